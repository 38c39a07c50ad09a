#include "daemon/membership/lineage.h"

namespace tg::daemon {

// All confirmed states of one lineage lie on one line: its key and a step name one.
bool descends_from(const Lineage& one, const Held& state) {
  schema::Origin at{state.lineage.number, state.lineage.key, state.step};
  // A lineage that has made no step stands at a state of an earlier one.
  for (auto earlier = state.lineage.line.begin();; ++earlier) {
    if (at.step == 0 || at.key == one.key) return true;
    for (const schema::Origin& from : one.line)
      if (from.lineage == at.lineage && from.key == at.key && at.step <= from.step) return true;
    if (earlier == state.lineage.line.end() || at.step != earlier->step) return false;
    at = *earlier;
  }
}

Heard compare(const Lineage& other, const Held& own) {
  if (other.is_same(own.lineage)) return Heard::kSame;
  if (!other.is_higher_than(own.lineage)) return Heard::kLower;
  return descends_from(other, own) ? Heard::kHigher : Heard::kContradicts;
}

std::string contradiction_text(const std::string& peer, const Lineage& other, const std::string& self,
                               const Held& own) {
  const std::uint64_t from = other.line.empty() ? 0 : other.line.front().step;
  return peer + " continues it as lineage " + std::to_string(other.number) + ", from step " + std::to_string(from) +
         "; " + self + " has lineage " + std::to_string(own.lineage.number) + " at step " + std::to_string(own.step);
}

}  // namespace tg::daemon
