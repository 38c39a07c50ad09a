#include "daemon/membership/outcome_sync.h"

#include <utility>

#include "daemon/membership/view.h"

namespace tg::daemon {

void OutcomeSync::send(const std::vector<Seat>& to, std::uint64_t run_key, const PastRun& run, bool asks) {
  schema::Ended word = run.end.truth;
  word.asks = asks;
  actions_.emplace_back(SendFrame{to, schema::FrameHeader{run_key, View::kFirst, 0}, std::move(word)});
}

void OutcomeSync::on_connected(Seat peer) {
  for (const auto& [run_key, run] : runs_) {
    if (!run.members[peer]) continue;
    const std::optional<schema::Ended>& word = run.end.members[peer];
    const schema::Ended& truth = run.end.truth;
    if (!word || word->state != truth.state || word->reason != truth.reason) send({peer}, run_key, run, !word);
  }
}

void OutcomeSync::on_ended(Seat from, std::uint64_t run_key, const schema::Ended& ended) {
  const auto found = runs_.find(run_key);
  if (found == runs_.end()) return;  // no record of it here
  PastRun& run = found->second;
  const schema::Ended before = run.end.truth;
  run.members[from] = true;
  schema::Ended word = ended;
  word.asks = false;
  const bool news = run.end.members[from] != word;
  run.end.members[from] = std::move(word);
  run.end = resolve_outcome(std::move(run.end.members), self_);
  if (news) actions_.emplace_back(RecordEnd{run_key, run.end});
  std::vector<Seat> to;
  for (const Seat peer : run.members.places()) {
    if (peer == self_ || !run.members[peer]) continue;
    // A member that has learned more tells all others.
    if (run.end.truth != before || (peer == from && ended.asks)) to.push_back(peer);
  }
  if (!to.empty()) send(to, run_key, run, false);
}

void OutcomeSync::answer(Seat from, std::uint64_t run_key) {
  const PastRun* const run = find(run_key);
  if (run != nullptr && schema::is_final(run->end.truth.state)) send({from}, run_key, *run, false);
}

void OutcomeSync::on_saved(std::uint64_t run_key, const schema::Ended& own) {
  const auto found = runs_.find(run_key);
  if (found == runs_.end()) return;
  PastRun& run = found->second;
  run.end.members[self_] = own;
  run.end = resolve_outcome(std::move(run.end.members), self_);
  actions_.emplace_back(RecordEnd{run_key, run.end});
  const auto others = run.members.places_where([&](Seat peer) { return peer != self_ && run.members[peer]; });
  if (!others.empty()) send(others, run_key, run, false);
}

}  // namespace tg::daemon
