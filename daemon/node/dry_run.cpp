#include "daemon/node/dry_run.h"

#include <utility>
#include <vector>

#include "daemon/membership/choose_exchange.h"
#include "kernels/base/random.h"

namespace tg::daemon {

void DryRun::begin(std::uint64_t token, RunIdentity identity, schema::JobSpec job, bool pictures) {
  token_ = token;
  pictures_ = pictures;
  const View view = View::of(identity.members, identity.weights);
  run_ = std::make_unique<Run>(context_, std::move(identity), std::move(job), view);
}

void DryRun::tick(bool busy) {
  if (!run_) return;
  if (const std::optional<schema::Vote> vote = run_->candidate().take_vote()) foresee(*vote, busy);
}

void DryRun::foresee(const schema::Vote& vote, bool busy) {
  if (!vote.accepted) return answer(Error{vote.kind, vote.message});
  const std::size_t members = run_->view().view().size();
  if (pictures_) {
    schema::StartReply reply =
        run_->facts(choose_exchange(exchange_preference(run_->job()), std::vector<schema::Vote>(members, vote)).commit);
    const Status shown = run_->show_data(reply);
    return shown.ok() ? answer(std::move(reply)) : answer(shown.error());
  }
  Question question = advisor_.weighed({run_->job(), members});
  question.model = run_->model();
  advisor_.foresee(std::move(question), draw_bits(), busy, [this, vote, members](const Result<Forecast>& forecast) {
    // The other members are taken to be like this one.
    const std::vector<schema::Vote> votes(members, vote);
    schema::StartReply reply =
        run_->facts(forecast ? forecast->chosen : choose_exchange(exchange_preference(run_->job()), votes).commit);
    Advisor::add(reply, forecast);
    answer(std::move(reply));
  });
}

void DryRun::give_way(Error why) {
  if (!run_) return;
  control_.reply(token_, std::move(why));
  run_.reset();
}

void DryRun::answer(schema::ReplyBody reply) {
  control_.reply(token_, std::move(reply));
  run_.reset();
  context_.news.progress.phase = schema::Phase::kIdle;
}

}  // namespace tg::daemon
