#include "daemon/membership/run_outcome.h"

#include <string>
#include <tuple>
#include <utility>

namespace tg::daemon {

bool overrides(const schema::Ended& a, const schema::Ended& b) {
  const int weight = precedence(a.state), other = precedence(b.state);
  if (weight != other) return weight > other;
  if (is_authoritative(a.state))
    return std::tie(b.state, a.since_ms) < std::tie(a.state, b.since_ms);  // never two kinds of one run
  // The first failure is the cause; an interrupted run ended when its last member went, not when the first one left.
  if (a.state == schema::RunState::kInterrupted) return std::tie(a.since_ms, a.reason) > std::tie(b.since_ms, b.reason);
  return std::tie(a.since_ms, a.reason) < std::tie(b.since_ms, b.reason);
}

RunOutcome resolve_outcome(Per<Seat, std::optional<schema::Ended>> words, Seat self) {
  RunOutcome end;
  end.truth = words[self].value();
  for (const std::optional<schema::Ended>& word : words)
    if (word && overrides(*word, end.truth)) end.truth = *word;
  schema::Ended own = *words[self];
  own.state = end.truth.state;
  own.reason = end.truth.reason;
  own.since_ms = end.truth.since_ms;
  own.step = end.truth.step;
  own.digest = end.truth.digest;
  own.asks = false;
  const bool other_state = own.held_step != own.step || own.held_digest != own.digest;
  if (is_authoritative(own.state) && other_state && own.save != schema::SaveState::kNothing) {
    own.problem = own.held_step == 0 ? "" : "it has the state of step " + std::to_string(own.held_step);
    own.save = schema::SaveState::kNothing;
  }
  end.truth = own;
  words[self] = own;
  end.members = std::move(words);
  return end;
}

}  // namespace tg::daemon
