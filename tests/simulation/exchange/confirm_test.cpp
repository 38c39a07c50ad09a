// A state is confirmed when all members hold it: their step frames say so, or their frames at the barrier before a
// report.
#include <gtest/gtest.h>

#include "daemon/exchange/barrier.h"
#include "tests/simulation/exchange/alone.h"

namespace tg::daemon {
namespace {

const Per<Seat, std::string> kNames = {"node-a", "node-b", "node-c"};

TEST(Confirm, ByTheLastStepFrameAndBeforeAnythingIsApplied) {
  Alone node(schema::ExchangeKind::kDirect, 1 << 20, kNames, 0);
  const std::vector<float> scalers(node.layout.buckets[0].coded_segments.size(), 1.0f);
  const auto confirmed = [&] {
    std::vector<ConfirmState> all;
    for (const ExchangeAction& action : node.exchange.take_actions()) {
      EXPECT_FALSE(std::holds_alternative<FailRun>(action));
      if (const auto* one = std::get_if<ConfirmState>(&action)) all.push_back(*one);
    }
    return all;
  };
  node.from(Rank(1), schema::StepFrame{0, schema::kCheckpoint, 0, 0, {}, scalers});
  node.exchange.add_flags(schema::kEvaluateAfterStep);
  node.bucket_ready();
  measure_all(node.exchange);
  EXPECT_TRUE(confirmed().empty()) << "node-c may be a step behind";
  EXPECT_FALSE(node.exchange.next_task(ThreadRole::kOnlyThread));
  node.from(Rank(2), schema::StepFrame{0, 0, 0, 0, {}, scalers});
  const std::vector<ConfirmState> all = confirmed();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].round, Round(0));
  EXPECT_EQ(all[0].flags, schema::kCheckpoint | schema::kEvaluateAfterStep);
  EXPECT_TRUE(node.exchange.next_task(ThreadRole::kOnlyThread));
}

TEST(Confirm, AnExchangeMayBeginAtAnyStep) {
  const Members members =
      Members::of(77, View::of_all(2), Seat(0), {"node-a", "node-b"}, simulation::tiny_segment_names());
  const Layout layout = Alone::make(schema::ExchangeKind::kDirect, 1 << 20, 2);
  Exchange exchange(members, simulation::tiny_segments(), CodeRule{}, {}, Round(41));
  EXPECT_EQ(exchange.round(), Round(41));
  const std::vector<float> scalers(layout.buckets[0].coded_segments.size(), 1.0f);
  exchange.on_frame(Rank(1), {77, 1, 40}, schema::Credit{1}, nullptr);  // late
  exchange.on_frame(Rank(1), {77, 1, 41}, schema::StepFrame{0, 0, 0, 0, {}, scalers}, nullptr);
  EXPECT_TRUE(exchange.take_actions().empty());
  exchange.begin_round(layout, {Round(41), 0, 0, {}});
  exchange.on_gradient_ready(0, 0);
  std::optional<Task> task = exchange.next_task(ThreadRole::kIdleThread);
  for (; task && std::holds_alternative<Measure>(*task); task = exchange.next_task(ThreadRole::kIdleThread)) {
    const auto& work = std::get<Measure>(*task);
    measure(exchange, work);
  }
  EXPECT_TRUE(task) << "the bucket is open";
  std::size_t confirmed = 0;
  for (const ExchangeAction& action : exchange.take_actions())
    if (const auto* one = std::get_if<ConfirmState>(&action)) confirmed += one->round == Round(41);
  EXPECT_EQ(confirmed, 1u);
  exchange.on_frame(Rank(1), {77, 1, 43}, schema::StepFrame{0, 0, 0, 0, {}, scalers}, nullptr);
  EXPECT_TRUE(exchange.has_failed()) << "two steps ahead";
}

TEST(Confirm, OnceAllMembersReachTheBarrier) {
  const Members members = Members::of(77, View::of_all(3), Seat(0), kNames, {});
  Barrier barrier(members);
  EXPECT_EQ(barrier.missing(Round(8)).size(), 3u);
  EXPECT_FALSE(barrier.on_reached(Rank(2), Round(8), Round(7))) << "no member waits for one that is ahead";
  EXPECT_FALSE(barrier.on_reached(Rank(2), Round(8), Round(7))) << "said twice";
  barrier.forget_before(Round(8));
  EXPECT_FALSE(barrier.on_reached(Rank(0), Round(8), Round(8)));
  EXPECT_EQ(barrier.missing(Round(8)), std::vector<Rank>{Rank(1)});
  EXPECT_FALSE(barrier.on_reached(Rank(1), Round(8), Round(8)));
  EXPECT_TRUE(barrier.missing(Round(8)).empty());
  for (const std::uint64_t step : {6u, 7u, 10u}) {
    const std::optional<schema::Fail> wrong = barrier.on_reached(Rank(1), Round(step), Round(8));
    ASSERT_TRUE(wrong) << step;
    EXPECT_EQ(wrong->node, "node-b");
  }
}

}  // namespace
}  // namespace tg::daemon
