#include "daemon/run/recorded_end.h"

#include <algorithm>
#include <iterator>

#include "daemon/membership/view.h"

namespace tg::daemon {

void record_end(RunRecord& record, const RunOutcome& end, const schema::NodeList& names) {
  const schema::Ended& truth = end.truth;
  record.status.state = truth.state;
  record.status.reason = truth.reason;
  record.status.since_ms = truth.since_ms;
  if (schema::is_authoritative(truth.state)) {
    record.status.step = record.status.digest_step = truth.step;
    record.status.digest = truth.digest;
  }
  for (schema::MemberStatus& row : record.status.members) row.state = truth.state;
  schema::MemberStatus& own = record.own_row();
  const bool held = own.save == schema::SaveState::kInMemory && truth.save == schema::SaveState::kNotSaved;
  if (!held) own.save = truth.save;
  own.problem = truth.problem;
  for (const Seat seat : names.all()) {
    if (names[seat] == record.node || !std::ranges::count(record.member_names, names[seat])) continue;
    const std::optional<schema::Ended>& word = end.members[seat];
    if (word) {
      record.others[names[seat]] = {word->save, word->problem};
    } else {
      record.others.try_emplace(names[seat], MemberOutcome{schema::SaveState::kUnknown, ""});
    }
  }
}

PastRun past_run(const RunRecord& record, const schema::NodeList& names, Seat self) {
  PastRun run;
  run.id = record.id;
  run.members.assign(names.kMaxNodes, false);
  // A former member also needs the outcome.
  for (const Seat seat : names.all())
    run.members[seat] = record.view > View::kFirst || std::ranges::count(record.member_names, names[seat]) > 0;
  std::ranges::copy_if(names.all(), std::back_inserter(run.known), [&](Seat seat) {
    return std::ranges::count(record.member_names, names[seat]) > 0 ||
           std::ranges::count(record.status.departed, names[seat], &schema::Departure::node) > 0;
  });
  schema::Ended& own = run.end.truth;
  own.state = record.status.state;
  own.reason = record.status.reason;
  own.since_ms = record.status.since_ms;
  if (schema::is_authoritative(own.state)) {
    own.step = record.status.digest_step;
    own.digest = record.status.digest;
  }
  for (const schema::MemberStatus& row : record.status.members) {
    if (row.node != record.node) continue;
    own.held_step = row.digest_step;
    own.held_digest = row.digest;
    own.save = row.save;
    own.problem = row.problem;
  }
  run.end.members.assign(names.kMaxNodes, std::nullopt);
  run.end.members[self] = own;
  return run;
}

}  // namespace tg::daemon
