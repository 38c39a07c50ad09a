// Every link is measured once in each direction, and no node is at two links at a time.
#include "daemon/doctor/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace tg::daemon {
namespace {

TEST(Schedule, EachLinkOnceAndEachNodeAtOneLinkAtATime) {
  for (std::size_t nodes = 1; nodes <= schema::kMaxMembers; nodes = nodes < 12 ? nodes + 1 : 2 * nodes + 1) {
    SCOPED_TRACE(nodes);
    std::set<std::pair<Seat, Seat>> measured;
    for (std::size_t slot = 0; slot < slots_for(nodes); ++slot) {
      std::set<Seat> busy;
      for (const Seat self : places<Seat>(nodes)) {
        const std::optional<Seat> to = receiver_in(slot, self, nodes);
        if (!to) continue;
        EXPECT_TRUE(busy.insert(self).second && busy.insert(*to).second) << "slot " << slot;
        EXPECT_TRUE(measured.emplace(self, *to).second);
      }
    }
    EXPECT_EQ(measured.size(), nodes * (nodes - 1));
  }
}

TEST(Schedule, TakesNoMoreRoundsThanItMust) {
  EXPECT_EQ(schema::examine_rounds(1), 0u);
  EXPECT_EQ(schema::examine_rounds(2), 1u);
  EXPECT_EQ(schema::examine_rounds(3), 3u);
  EXPECT_EQ(schema::examine_rounds(4), 3u);
}

}  // namespace
}  // namespace tg::daemon
