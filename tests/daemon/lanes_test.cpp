// Work that is given is done once, and reported once, by as many threads as were asked for.
#include "daemon/simulate/lanes.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <fstream>
#include <iterator>
#include <latch>
#include <system_error>

namespace tg::daemon {
namespace {

constexpr std::size_t kWorks = 40;

std::vector<Rank> first_ranks(std::size_t count) {
  std::vector<Rank> ranks;
  std::ranges::copy(places<Rank>(count), std::back_inserter(ranks));
  return ranks;
}

class EachLanes : public testing::TestWithParam<std::size_t> {};

TEST_P(EachLanes, DoAllGivenWorkAndReportItOnce) {
  std::vector<int> done(kWorks);
  std::vector<Rank> told;
  Lanes lanes(GetParam());
  EXPECT_TRUE(lanes.take_done(false).empty());
  for (const Rank member : places<Rank>(kWorks)) lanes.give(member, [&, member] { ++done[member.index()]; });
  while (told.size() < kWorks) {
    const std::vector<Rank> some = lanes.take_done(true);
    ASSERT_FALSE(some.empty());
    for (const Rank member : some) EXPECT_EQ(done[member.index()], 1) << "reported before it was done";
    told.insert(told.end(), some.begin(), some.end());
  }
  EXPECT_TRUE(lanes.take_done(false).empty());
  EXPECT_EQ(done, std::vector<int>(kWorks, 1));
  std::ranges::sort(told);
  EXPECT_EQ(told, first_ranks(kWorks));
}

// Without so many threads at once none passes the barrier, and the test does not end.
TEST_P(EachLanes, WorkSideBySide) {
  const std::size_t count = GetParam();
  std::barrier all_are_here(static_cast<std::ptrdiff_t>(count));
  std::atomic<std::size_t> in_flight = 0;
  std::atomic<bool> too_many = false;
  {
    Lanes lanes(count);
    for (const Rank member : places<Rank>(3 * count))
      lanes.give(member, [&] {
        if (++in_flight > count) too_many = true;
        all_are_here.arrive_and_wait();
        --in_flight;
      });
  }
  EXPECT_FALSE(too_many);
}

TEST_P(EachLanes, EndWhenAllIsDone) {
  std::atomic<std::size_t> done = 0;
  {
    Lanes lanes(GetParam());
    for (const Rank member : places<Rank>(kWorks)) lanes.give(member, [&] { ++done; });
  }
  EXPECT_EQ(done, kWorks);
}

INSTANTIATE_TEST_SUITE_P(All, EachLanes, testing::Values(1, 2, 5));

TEST(Lanes, OneIsTheCallersThread) {
  Lanes lanes(1);
  std::thread::id by;
  lanes.give(Rank(3), [&] { by = std::this_thread::get_id(); });
  EXPECT_EQ(by, std::this_thread::get_id());
  EXPECT_EQ(lanes.take_done(true), std::vector{Rank(3)});
}

// The address space has room for a few stacks only.
TEST(Lanes, EndWhereOneMoreCannotBeMade) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers need all addresses";
#endif
  constexpr rlim_t kMore = rlim_t{64} << 20;
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMore, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &less), 0);
  EXPECT_THROW(Lanes(1000), std::system_error);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
}

// One lane is held by the first work until the last one is done; the other begins once all is given.
TEST(Lanes, TakeWorkInTheOrderInWhichItIsGiven) {
  std::latch others(kWorks - 1), all_given(1);
  std::vector<Rank> order;
  {
    Lanes lanes(2);
    lanes.give(Rank(0), [&] { others.wait(); });
    for (std::size_t i = 1; i < kWorks; ++i)
      lanes.give(Rank(i), [&, i] {
        all_given.wait();
        order.emplace_back(i);
        others.count_down();
      });
    all_given.count_down();
  }
  EXPECT_EQ(order.size(), kWorks - 1);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

}  // namespace
}  // namespace tg::daemon
