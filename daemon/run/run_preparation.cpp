#include "daemon/run/run_preparation.h"

#include <utility>

#include "daemon/mesh/probe/send_burst.h"
#include "kernels/base/now.h"

namespace tg::daemon {

RunPreparation::RunPreparation(const RunContext& context, std::uint64_t run_key, const schema::JobSpec& job,
                               std::uint64_t global_batch, std::vector<Seat> measured)
    : context_(context),
      run_key_(run_key),
      job_(job),
      global_batch_(global_batch),
      probe_(job.link_mbps > 0 ? std::vector<Seat>() : std::move(measured), context.self.config.seat()) {}

void RunPreparation::on_prepared(Result<std::shared_ptr<const PreparedView>> result) {
  result_ = std::move(result);
  if (!result_->ok()) return;
  if (const auto burst = probe_.start(now_seconds()))
    send_burst(context_.network.mesh, context_.network.pool, run_key_, *burst);
}

void RunPreparation::on_probe_reply(Seat from, const schema::ProbeReply& reply) {
  if (const auto next = probe_.on_reply(from, reply, now_seconds()))
    send_burst(context_.network.mesh, context_.network.pool, run_key_, *next);
}

std::optional<schema::Vote> RunPreparation::take_vote() {
  if (voted_ || !result_) return std::nullopt;
  probe_.tick(now_seconds());
  if (result_->ok() && !probe_.is_done()) return std::nullopt;
  voted_ = true;
  return vote();
}

engine::EachName RunPreparation::data_names() const {
  if (!result_ || !result_->ok()) return [](const auto&) {};
  return result_->value()->run->data->file_names;
}

schema::Vote RunPreparation::vote() const {
  schema::Vote vote;
  vote.spec_hash = schema::job_hash(job_);
  if (!result_->ok()) {
    vote.kind = result_->error().kind;
    vote.message = result_->error().message;
    return vote;
  }
  const PreparedView& view = *result_->value();
  const Prepared& prepared = *view.run;
  vote.accepted = true;
  static_assert(engine::FileSums::kMaxTextBytes <= schema::kMaxReasonBytes);
  if (!prepared.data->files.empty()) vote.message = prepared.data->files.text();
  vote.model_hash = prepared.model_hash;
  vote.data_hash = prepared.data_hash;
  vote.state_hash = prepared.initial_digest;
  vote.step_seconds = view.step_seconds;
  vote.local_batch = view.local_batch;
  vote.global_batch = global_batch_;
  vote.link_mbps = probe_.mbps();
  vote.workers = static_cast<std::uint16_t>(workers_for(context_.threads_for(job_)));
  return vote;
}

}  // namespace tg::daemon
