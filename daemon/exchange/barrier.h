// The barrier after certain commits: before an evaluation, at the last round, at a stop. Each member says that it has
// reached the state; when all have, the state is confirmed without a round after it. Pure; owned by the thread that
// owns the Member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "daemon/exchange/members.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class Barrier {
 public:
  explicit Barrier(const Members& members) : members_(members) {}

  // The member holds the state of so many rounds. Why that ends the run, if it does. committed: this member's own
  // rounds; the word is about that state or the next.
  std::optional<schema::Fail> on_reached(Rank from, Round round, Round committed);
  // This many rounds are committed: words about older states are dropped.
  void forget_before(Round round) { by_round_.erase(by_round_.begin(), by_round_.lower_bound(round)); }
  std::vector<Rank> missing(Round round) const;

 private:
  const Members& members_;
  std::map<Round, Per<Rank, bool>> by_round_;  // at most two rounds
};

}  // namespace tg::daemon
