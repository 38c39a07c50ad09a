// What a peer may not send: each frame here ends the run with a cause that names its sender and what was wrong. Three
// members, sharded; node-a is the one that is sent to.
#include <gtest/gtest.h>

#include <functional>

#include "daemon/exchange/exchange.h"
#include "tests/simulation/exchange/alone.h"

namespace tg::daemon {
namespace {

const Rank kB(1);
const Rank kC(2);

struct Sharded : Alone {
  Sharded() : Alone(schema::ExchangeKind::kSharded, kWide, {"node-a", "node-b", "node-c"}) {}
  std::size_t chunk_of(Rank owner) const {
    const auto found = std::ranges::find(layout.chunks, owner, &ChunkLayout::owner);
    return static_cast<std::size_t>(found - layout.chunks.begin());
  }
  void send(Rank peer, std::size_t chunk, schema::ChunkPhase phase, schema::PayloadFormat format) {
    payload.resize(kPayload);
    from(peer, schema::Chunk{static_cast<std::uint32_t>(chunk), phase, format, payload});
  }
  void expect_blamed(Rank peer, const std::string& what) {
    const std::optional<schema::Fail> cause = failure();
    ASSERT_TRUE(cause) << what;
    EXPECT_EQ(cause->node, members.names[peer]);
    EXPECT_NE(cause->message.find(what), std::string::npos) << cause->message;
  }
};

using enum schema::ChunkPhase;
using enum schema::PayloadFormat;

TEST(ExchangeRefusal, CodesTwice) {
  Sharded node;
  const std::size_t chunk = node.chunk_of(Rank(0));
  node.codes_from(kB, chunk, kPayload);
  EXPECT_FALSE(node.failure());
  node.codes_from(kB, chunk, kPayload);
  node.expect_blamed(kB, "twice");
}

TEST(ExchangeRefusal, CodesOfAChunkThatIsBeingSummed) {
  Sharded node;
  const std::size_t chunk = node.chunk_of(Rank(0));
  node.codes_from(kB, chunk, kPayload);
  node.codes_from(kC, chunk, kPayload);
  std::optional<Task> task = node.exchange.next_task(ThreadRole::kIdleThread);
  while (task && !std::holds_alternative<Reduce>(*task)) task = node.exchange.next_task(ThreadRole::kIdleThread);
  ASSERT_TRUE(task) << "nothing is summed";
  node.codes_from(kC, chunk, kPayload);
  node.expect_blamed(kC, "twice");
}

TEST(ExchangeRefusal, ATotalTwice) {
  Sharded node;
  node.contribute_all();
  const std::size_t chunk = node.chunk_of(kB);
  node.total_from_owner(chunk, kPayload);
  EXPECT_FALSE(node.failure());
  node.total_from_owner(chunk, kPayload);
  node.expect_blamed(kB, "twice");
}

TEST(ExchangeRefusal, ATotalWithoutOurCodes) {
  Sharded node;
  node.total_from_owner(node.chunk_of(kB), kPayload);
  node.expect_blamed(kB, "summed without the codes of node-a");
}

TEST(ExchangeRefusal, FramesForAnotherMember) {
  const auto each = [](const char* what, const std::function<void(Sharded&)>& send) {
    Sharded node;
    node.contribute_all();
    send(node);
    node.expect_blamed(kB, what);
  };
  each("to the wrong member", [](Sharded& node) { node.send(kB, node.chunk_of(kC), kContribution, kCodesRaw); });
  each("to the wrong member", [](Sharded& node) { node.send(kB, node.chunk_of(kC), kTotal, kSumsRaw); });
  each("to the wrong member", [](Sharded& node) { node.send(kB, node.chunk_of(Rank(0)), kTotal, kSumsRaw); });
  each("in a format that the layout does not have",
       [](Sharded& node) { node.send(kB, node.chunk_of(Rank(0)), kContribution, kSumsRaw); });
  each("in a format that the layout does not have",
       [](Sharded& node) { node.send(kB, node.chunk_of(kB), kTotal, kFloat32); });
  each("which is not in the layout",
       [](Sharded& node) { node.send(kB, node.layout.chunks.size(), kContribution, kCodesRaw); });
  each("gives credit for", [](Sharded& node) { node.from(kB, schema::Credit{1u << 30}); });
}

// Otherwise chunks could be applied while a member may still go back a step.
TEST(ExchangeRefusal, ScalersBeforeTheStepFrame) {
  Alone node(schema::ExchangeKind::kDirect, kWide, {"node-a", "node-b"}, 0);
  const std::vector<float> scalers(node.layout.buckets[1].coded_segments.size(), 1.0f);
  node.from(kB, schema::Scalers{1, 0, 0, scalers});
  const std::optional<schema::Fail> cause = node.failure();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->node, "node-b");
  EXPECT_NE(cause->message.find("scalers of bucket 1 before its step frame of step 0"), std::string::npos);
}

}  // namespace
}  // namespace tg::daemon
