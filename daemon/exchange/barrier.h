// The barrier after certain commits: before an evaluation, at the last step, at a stop. Each member says that it has
// reached the state; when all have, the state is confirmed without a step after it. Pure; owned by the thread that owns
// the Member.
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

  // The member holds the state of so many steps. Why that ends the run, if it does. committed: this member's own steps;
  // the word is about that state or the next.
  std::optional<schema::Fail> take(Rank from, std::uint64_t step, std::uint64_t committed);
  // This many steps are committed: words about older states are dropped.
  void forget_before(std::uint64_t step) { by_step_.erase(by_step_.begin(), by_step_.lower_bound(step)); }
  std::vector<Rank> missing(std::uint64_t step) const;

 private:
  const Members& members_;
  std::map<std::uint64_t, Per<Rank, bool>> by_step_;  // at most two steps
};

}  // namespace tg::daemon
