// What an exchange does next: transfers before statistics, to which peer and when; the bucket that is ready last before
// the others.
#include <gtest/gtest.h>

#include "daemon/exchange/exchange.h"
#include "tests/simulation/exchange/alone.h"

namespace tg::daemon {
namespace {

// Two buckets are open, the third one waits to be measured.
struct OneToMeasure : Alone {
  explicit OneToMeasure(schema::ExchangeKind kind, std::size_t window = kWide)
      : Alone(kind, window, {"node-a", "node-b"}, 2) {
    bucket_ready();
  }
  std::string next(ThreadRole role) {
    const std::optional<Task> task = exchange.next_task(role);
    if (!task) return "nothing";
    if (const auto* one = std::get_if<Contribute>(&*task)) exchange.on_contributed(*one, kPayload);
    return task_name(*task);
  }
};

TEST(ExchangeOrder, StatisticsWaitForAllThatCanRun) {
  OneToMeasure node(schema::ExchangeKind::kSharded);
  std::vector<std::size_t> own, theirs;
  for (std::size_t c = 0; c < node.layout.buckets[2].first_chunk; ++c)
    (node.layout.chunks[c].owner == Rank(0) ? own : theirs).push_back(c);
  ASSERT_GT(std::min(own.size(), theirs.size()), 2u);
  for (const std::size_t chunk : own) node.codes_from_peer(chunk, kPayload);
  std::size_t contributions = 0, reductions = 0;
  for (std::size_t i = 0; i < own.size() + theirs.size(); ++i) {
    const std::string next = node.next(i % 2 == 0 ? ThreadRole::kIdleThread : ThreadRole::kBusyThread);
    contributions += next == "contribute";
    reductions += next == "reduce";
  }
  EXPECT_EQ(contributions, theirs.size());
  EXPECT_EQ(reductions, own.size());
  node.total_from_owner(theirs[0], kPayload);
  EXPECT_EQ(node.next(ThreadRole::kIdleThread), "apply");
  EXPECT_EQ(node.next(ThreadRole::kBusyThread), "nothing") << "statistics do not wait behind another task";
  EXPECT_EQ(node.next(ThreadRole::kIdleThread), "measure");
  EXPECT_EQ(node.next(ThreadRole::kIdleThread), "nothing");
}

TEST(ExchangeOrder, ChunksWithoutCreditCannotRun) {
  OneToMeasure node(schema::ExchangeKind::kDirect, kPayload);
  EXPECT_EQ(node.next(ThreadRole::kIdleThread), "contribute");
  EXPECT_EQ(node.next(ThreadRole::kBusyThread), "nothing");
  EXPECT_EQ(node.next(ThreadRole::kIdleThread), "measure");
}

TEST(ExchangeOrder, TheOnlyThreadMeasuresWhileTheLinkHasEnough) {
  OneToMeasure node(schema::ExchangeKind::kDirect, 2 * kPayload);
  EXPECT_EQ(node.next(ThreadRole::kOnlyThread), "contribute");
  EXPECT_EQ(node.next(ThreadRole::kOnlyThread), "measure") << "half a window is on its way";
  EXPECT_EQ(node.next(ThreadRole::kOnlyThread), "contribute");
}

TEST(ExchangeOrder, TheBucketThatIsReadyLastGoesFirst) {
  Alone node(schema::ExchangeKind::kDirect, kWide);
  std::size_t bucket = node.layout.buckets.size() - 1;
  while (const auto work = node.exchange.next_task(ThreadRole::kOnlyThread)) {
    const auto& contribute = std::get<Contribute>(*work);
    const std::size_t next = node.layout.chunks[contribute.chunk].bucket;
    EXPECT_LE(next, bucket);
    bucket = next;
    node.exchange.on_contributed(contribute, kPayload);
  }
  EXPECT_EQ(bucket, 0u);
}

}  // namespace
}  // namespace tg::daemon
