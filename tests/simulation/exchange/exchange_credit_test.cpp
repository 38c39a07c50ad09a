// Credit: what is on its way to a peer is bounded, a credit frame opens the way again, and totals wait as contributions
// do. The exchange alone, with a layout whose window is a few bytes.
#include <gtest/gtest.h>

#include "daemon/exchange/credit_book.h"
#include "daemon/exchange/exchange.h"
#include "tests/simulation/exchange/alone.h"
#include "tests/simulation/exchange/plain_segments.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_segments;

TEST(ExchangeCredit, TheWindowBoundsTheBytesInFlight) {
  Alone node(schema::ExchangeKind::kDirect);
  ASSERT_GT(node.layout.chunks.size(), 6u);
  EXPECT_EQ(node.contribute_all(), 2u);
  EXPECT_EQ(node.exchange.bytes_in_flight(), 2 * kPayload);
  node.from_peer(schema::Credit{kPayload});
  EXPECT_EQ(node.contribute_all(), 1u);
  node.from_peer(schema::Credit{3 * kPayload});
  EXPECT_EQ(node.exchange.bytes_in_flight(), 0u);
  EXPECT_EQ(node.contribute_all(), 2u);
  EXPECT_FALSE(node.failure());
}

TEST(ExchangeCredit, ChunksBeingEncodedCount) {
  Alone node(schema::ExchangeKind::kDirect, kExpected + 1);
  std::vector<Contribute> in_flight;
  while (const auto work = node.exchange.next_task(ThreadRole::kOnlyThread))
    in_flight.push_back(std::get<Contribute>(*work));
  ASSERT_EQ(in_flight.size(), 2u) << "the second one overshoots";
  EXPECT_EQ(node.exchange.bytes_in_flight(), 2 * kExpected);
  node.exchange.on_contributed(in_flight[1], 1);  // smaller than expected
  EXPECT_EQ(node.exchange.bytes_in_flight(), kExpected + 1);
  EXPECT_FALSE(node.exchange.next_task(ThreadRole::kOnlyThread));
  node.exchange.on_contributed(in_flight[0], 1);
  EXPECT_TRUE(node.exchange.next_task(ThreadRole::kOnlyThread));
}

TEST(ExchangeCredit, ATotalBeforeTheOwnCodesEndsTheRun) {
  Alone node(schema::ExchangeKind::kSharded);
  std::size_t theirs = 0;
  while (node.layout.chunks[theirs].owner != Rank(1)) ++theirs;
  node.total_from_owner(theirs, 8);
  const auto failure = node.failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->node, "node-b");
  EXPECT_NE(failure->message.find("without the codes of node-a"), std::string::npos) << failure->message;
}

TEST(ExchangeCredit, APeerThatWithholdsItIsAwaited) {
  Alone node(schema::ExchangeKind::kDirect);
  node.contribute_all();
  for (std::size_t c = 0; c < node.layout.chunks.size(); ++c) node.codes_from_peer(c, 8);
  const Waiting waiting = node.exchange.waiting();
  EXPECT_EQ(waiting.ranks, std::vector<Rank>{Rank(1)});
  EXPECT_EQ(waiting.phase, schema::Phase::kReduce);
}

// The third one has stopped: its full window stops the codes of all, and the second's come no more than ours leave.
TEST(ExchangeCredit, APeerThatBlocksAllIsAwaitedFirst) {
  for (const bool direct : {true, false}) {
    Alone node(direct ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded, 2 * kPayload,
               {"node-a", "node-b", "node-c"});
    ASSERT_GE(node.contribute_all(), 2u);
    node.from(Rank(1), schema::Credit{2 * kPayload});
    (void)node.contribute_all();
    const Waiting waiting = node.exchange.waiting();
    EXPECT_EQ(waiting.ranks, direct ? std::vector<Rank>{Rank(2)} : (std::vector<Rank>{Rank(1), Rank(2)})) << direct;
    EXPECT_EQ(waiting.phase, schema::Phase::kReduce);
    EXPECT_FALSE(node.failure());
  }
}

TEST(ExchangeCredit, MoreThanWasSentEndsTheRun) {
  Alone node(schema::ExchangeKind::kDirect);
  node.contribute_all();
  node.from_peer(schema::Credit{2 * kPayload + 1});
  const auto failure = node.failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->node, "node-b");
}

TEST(ExchangeCredit, LessThanBeforeEndsTheRun) {
  Alone node(schema::ExchangeKind::kDirect);
  node.contribute_all();
  node.from_peer(schema::Credit{2 * kPayload});
  node.from_peer(schema::Credit{kPayload});
  EXPECT_TRUE(node.failure());
}

TEST(ExchangeCredit, TheWindowIsAsWideAsTheChunksNeed) {
  LayoutOptions options;
  options.exchange = schema::ExchangeKind::kSharded;
  options.chunk_parameters = 512;
  options.window_bytes = 1;
  const auto window = [&](std::size_t members, GradientFormat gradients, GradientFormat last) {
    options.members = members;
    options.gradients = gradients;
    options.last_layer = last;
    return make_layout(tiny_segments(), options).window_bytes;
  };
  constexpr auto kTernary = GradientFormat::kTernary, kFloat32 = GradientFormat::kFloat32;
  EXPECT_EQ(window(2, kTernary, kTernary), 2 * 512U);
  EXPECT_EQ(window(4, kTernary, kTernary), 512U) << "at a port where three meet there is less room";
  EXPECT_EQ(window(4, kTernary, kFloat32), 512U) << "few float chunks do not widen it";
  EXPECT_EQ(window(4, kFloat32, kFloat32), 4 * 512U);
  options.window_bytes = 1 << 20;
  EXPECT_EQ(window(4, kTernary, kTernary), 1U << 20) << "the link's own wish";
}

// AlexNet on a slow link: a millisecond of it would be chunks of 50 Ki parameters.
TEST(ExchangeCredit, ALargeModelsChunksAreSmallerThanWindowsBetweenMany) {
  const engine::SegmentTable segments = simulation::plain_segments({61'000'000});
  LayoutOptions options;
  options.exchange = schema::ExchangeKind::kSharded;
  options.most_chunk_parameters = 50'000;
  options.window_bytes = 1;
  const auto layout = [&](std::size_t members) {
    options.members = members;
    return make_layout(segments, options);
  };
  for (const std::size_t members : {3u, 4u}) {
    EXPECT_NEAR(static_cast<double>(layout(members).longest_chunk), 61e6 / 480, 2048) << members;
    EXPECT_NEAR(static_cast<double>(layout(members).window_bytes), 61e6 / 480, 2048) << members;
  }
  EXPECT_NEAR(static_cast<double>(layout(8).longest_chunk), 61e6 / 960, 2048);
  EXPECT_NEAR(static_cast<double>(layout(8).window_bytes), 61e6 / 480, 2048);
  EXPECT_NEAR(static_cast<double>(layout(16).window_bytes), 61e6 / 960, 2048) << "at a port where fifteen meet";
  EXPECT_NEAR(static_cast<double>(layout(5).longest_chunk), 61e6 / 600, 2048);
  EXPECT_NEAR(static_cast<double>(layout(5).window_bytes), 61e6 / 480, 2048);
  options.exchange = schema::ExchangeKind::kDirect;
  EXPECT_NEAR(static_cast<double>(layout(8).longest_chunk), 61e6 / 480, 2048) << "no owners";
  options.exchange = schema::ExchangeKind::kSharded;
  options.gradients = GradientFormat::kFloat32;
  EXPECT_EQ(layout(8).window_bytes, layout(8).longest_chunk * sizeof(float));
  options.gradients = GradientFormat::kTernary;
  options.most_chunk_parameters = 200'000;
  EXPECT_NEAR(static_cast<double>(layout(8).longest_chunk), 200e3, 6000) << "a faster link";
  EXPECT_EQ(layout(8).window_bytes, layout(8).longest_chunk);
}

TEST(ExchangeCredit, IsGivenAfterSoManyBytes) {
  Alone node(schema::ExchangeKind::kDirect, 4096);
  const std::size_t half = node.layout.credit_every_bytes() / 2;
  node.codes_from_peer(0, half);
  EXPECT_TRUE(node.exchange.take_actions().empty());
  node.codes_from_peer(1, half);
  const auto actions = node.exchange.take_actions();
  ASSERT_EQ(actions.size(), 1u);
  const auto& send = std::get<Send>(actions[0]);
  EXPECT_EQ(send.to, std::vector<Rank>{Rank(1)});
  EXPECT_EQ(std::get<schema::Credit>(send.body).taken_bytes, 2 * half);
}

// Otherwise totals that come faster than they can be applied would gather without a bound.
TEST(ExchangeCredit, ATotalsIsGivenWhenItIsHandedOut) {
  Alone node(schema::ExchangeKind::kSharded, 1 << 20);
  node.contribute_all();
  std::size_t theirs = 0;
  while (node.layout.chunks[theirs].owner != Rank(1)) ++theirs;
  node.total_from_owner(theirs, node.layout.credit_every_bytes());
  EXPECT_TRUE(node.exchange.take_actions().empty());
  const auto task = node.exchange.next_task(ThreadRole::kBusyThread);
  ASSERT_TRUE(task && std::holds_alternative<Apply>(*task));
  const auto actions = node.exchange.take_actions();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<schema::Credit>(std::get<Send>(actions[0]).body).taken_bytes, node.layout.credit_every_bytes());
}

TEST(ExchangeCredit, IsNotGivenForTheLastOfAStep) {
  for (const auto kind : {schema::ExchangeKind::kDirect, schema::ExchangeKind::kSharded}) {
    Alone node(kind, 1 << 20);
    const std::size_t chunks = node.layout.chunks.size();
    node.contribute_all();
    std::size_t credits = 0;
    const auto count_credits = [&] {
      for (const ExchangeAction& action : node.exchange.take_actions())
        if (const auto* send = std::get_if<Send>(&action))
          credits += std::holds_alternative<schema::Credit>(send->body);
    };
    for (std::size_t c = 0; c < chunks; ++c) {
      EXPECT_EQ(credits, c);
      if (!node.layout.sharded() || node.layout.chunks[c].owner == Rank(0)) {
        node.codes_from_peer(c, node.layout.credit_every_bytes());
      } else {
        node.total_from_owner(c, node.layout.credit_every_bytes());
      }
      while (node.exchange.next_task(ThreadRole::kOnlyThread)) continue;
      count_credits();
    }
    EXPECT_EQ(credits, chunks - 1);
  }
}

TEST(ExchangeCredit, TotalsWaitForIt) {
  Alone node(schema::ExchangeKind::kSharded);
  EXPECT_EQ(node.contribute_all(), 2u);
  for (std::size_t c = 0; c < node.layout.chunks.size(); ++c)
    if (node.layout.chunks[c].owner == Rank(0)) node.codes_from_peer(c, 8);
  EXPECT_FALSE(node.exchange.next_task(ThreadRole::kOnlyThread)) << "no credit, no total";
  node.from_peer(schema::Credit{2 * kPayload});
  const auto work = node.exchange.next_task(ThreadRole::kOnlyThread);
  ASSERT_TRUE(work);
  EXPECT_TRUE(std::holds_alternative<Reduce>(*work)) << "a member waits for it: it goes first";
}

// One of four members: all windows are full of contributions, and the others' codes of four chunks have come.
struct Owner : Alone {
  static constexpr std::size_t kWindow = 2 * kPayload;
  Owner() : Alone(schema::ExchangeKind::kSharded, kWindow, {"node-a", "node-b", "node-c", "node-d"}) {
    EXPECT_EQ(contribute_all(), 6u);
    for (std::size_t c = 0; c < layout.chunks.size(); ++c)
      for (const Rank peer : members.others())
        if (layout.chunks[c].owner == Rank(0)) codes_from(peer, c, 8);
  }
  void takes(Rank peer, std::uint64_t bytes) { from(peer, schema::Credit{bytes}); }
  // Sends what may be sent; the totals among it.
  std::size_t totals() {
    std::size_t sent = 0;
    while (const auto task = exchange.next_task(ThreadRole::kOnlyThread)) {
      if (const auto* contribute = std::get_if<Contribute>(&*task)) exchange.on_contributed(*contribute, kPayload);
      if (const auto* reduce = std::get_if<Reduce>(&*task)) {
        exchange.on_total_sent(reduce->chunk, reduce->to, kPayload);
        ++sent;
      }
    }
    return sent;
  }
  std::vector<Rank> waited_for() { return exchange.waiting().ranks; }
};

TEST(ExchangeCredit, TotalsNeedRoomForAllTogetherAndNoMoreThanTwoWindowsForEach) {
  static_assert(schema::kMaxWindowsOfTotals == 2);
  const Rank b(1), c(2), d(3);
  Owner node;
  EXPECT_EQ(node.totals(), 0u) << "all windows are full";
  EXPECT_EQ(node.waited_for(), (std::vector<Rank>{b, c, d}));
  node.takes(b, 2 * kPayload);
  node.takes(c, 2 * kPayload);
  EXPECT_EQ(node.totals(), 2u) << "past the full window of node-d";
  EXPECT_EQ(node.exchange.bytes_in_flight(), (2 + 2 + 4) * kPayload);
  EXPECT_EQ(node.waited_for(), (std::vector<Rank>{b, c, d})) << "together they have more than a window each";
  node.takes(b, 4 * kPayload);
  node.takes(c, 4 * kPayload);
  EXPECT_EQ(node.totals(), 0u) << "node-d has two windows";
  EXPECT_EQ(node.waited_for(), std::vector<Rank>{d}) << "no other member keeps anything from leaving";
  node.takes(d, kPayload);
  EXPECT_EQ(node.totals(), 1u);
  EXPECT_FALSE(node.failure());
}

TEST(CreditBook, OneOtherMemberHasOneWindow) {
  CreditBook book;
  book.begin_round(2, 100, 25);
  book.reserve({Rank(1)}, 99);
  EXPECT_TRUE(book.has_credit_for_totals());
  book.reserve({Rank(1)}, 1);
  EXPECT_FALSE(book.has_credit_for_totals()) << "its window is that of all";
  EXPECT_TRUE(book.totals_window_full(Rank(1)));
}

}  // namespace
}  // namespace tg::daemon
