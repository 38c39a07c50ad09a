// Starts on a virtual network: many seeds, many sizes, everything that can go wrong on the way to a run.
#include <algorithm>
#include <map>

#include "tests/simulation/simulator/cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kStartSettleMs = 60'000;  // start-timeout and peer-timeout are within
// Membership's frames on one link: claim, grant, proposal, vote, verdict, ...; a view change asks each voter once a
// second.
constexpr std::size_t kMaxQueuedFrames = 48;

// Whatever happened: no node hangs, every living client has its answer, no queue has grown, never two runs at once. The
// nodes in a run train in one view, or say that too few are there.
bool is_settled(Cluster& cluster) {
  std::optional<daemon::View> view;
  for (const Seat seat : cluster.living()) {
    daemon::Membership& membership = cluster.node(seat).membership();
    if (membership.idle() || membership.state() == schema::RunState::kPaused) continue;
    if (membership.state() != schema::RunState::kRunning) return false;
    if (!view) view = membership.view();
    if (membership.view().number() != view->number()) return false;
  }
  const std::vector<Seat> living = cluster.living();
  return !view || std::ranges::all_of(view->seats(), [&](Seat seat) {
    return std::ranges::count(living, seat) > 0 && cluster.node(seat).running();
  });
}

void expect_settled(Cluster& cluster, const std::vector<Seat>& starters) {
  EXPECT_TRUE(cluster.run_until([&] { return is_settled(cluster); }, kStartSettleMs)) << "a node hangs";
  for (const Seat seat : starters)
    if (!cluster.network().dead(seat)) {
      EXPECT_NE(cluster.answer(seat), nullptr) << "no answer at " << cluster.name(seat);
    }
  EXPECT_LE(cluster.network().most_waiting_frames(), kMaxQueuedFrames);
  EXPECT_FALSE(cluster.two_runs_at_once());
}

TEST(StartScenarios, AStartCompletesFromAnyNode) {
  for_each_seed(300, {1, 64}, [](std::uint64_t seed, std::size_t nodes) {
    NodeOptions options;
    options.run_ms = 500;
    Cluster cluster({nodes, seed}, options);
    const Seat proposer = cluster.any();
    cluster.start(proposer, "run-1");
    EXPECT_EQ(cluster.node(proposer).membership().state().has_value(), true);
    cluster.network().connect_all();
    EXPECT_TRUE(cluster.ends_within(5'000));
    for (const Seat seat : cluster.seats()) {
      EXPECT_TRUE(cluster.node(seat).outcome("run-1").began);
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kCompleted);
      EXPECT_EQ(cluster.node(seat).outcome("run-1").exchange,
                nodes <= 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded);
    }
    ASSERT_NE(cluster.answer(proposer), nullptr);
    EXPECT_TRUE(cluster.answer(proposer)->status.ok());
    expect_settled(cluster, {proposer});
  });
}

TEST(StartScenarios, ExactlyOneOfConcurrentStartsRuns) {
  for_each_seed(300, {2, 64}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    cluster.network().connect_all();
    cluster.network().run_for(300);
    std::vector<Seat> starters{cluster.any()};
    const std::size_t wanted = std::min<std::size_t>(nodes, seed % 2 ? 2 : 3);
    while (starters.size() < wanted) {
      const Seat seat = cluster.any();
      if (std::find(starters.begin(), starters.end(), seat) == starters.end()) starters.push_back(seat);
    }
    for (const Seat seat : starters) cluster.start(seat, "run-" + cluster.name(seat));
    const auto all_answered = [&] {
      return std::all_of(starters.begin(), starters.end(), [&](Seat seat) { return cluster.answer(seat) != nullptr; });
    };
    EXPECT_TRUE(cluster.run_until(all_answered, 10'000));
    if (testing::Test::HasFailure()) return;
    std::string winner;
    for (const Seat seat : starters)
      if (cluster.answer(seat)->status.ok()) {
        EXPECT_EQ(winner, "") << "two starts succeeded";
        winner = cluster.answer(seat)->run_id;
      }
    EXPECT_NE(winner, "");
    for (const Seat seat : starters) {
      const Status& status = cluster.answer(seat)->status;
      if (status.ok()) continue;
      EXPECT_EQ(status.error().kind, ErrorKind::kRefused);
      EXPECT_NE(status.error().message.find("run " + winner + " is already "), std::string::npos)
          << status.error().message;
    }
    EXPECT_TRUE(cluster.runs_within(1'000, winner));
    EXPECT_FALSE(cluster.two_runs_at_once());
    // A stop at any node ends it for all.
    EXPECT_TRUE(cluster.node(cluster.any()).stop(winner).ok());
    EXPECT_TRUE(cluster.ends_within(1'000, winner));
    for (const Seat seat : cluster.seats())
      EXPECT_EQ(cluster.node(seat).outcome(winner).end, schema::RunState::kStopped);
    expect_settled(cluster, starters);
  });
}

// After a drawn number of the start's frames.
TEST(StartScenarios, ADeathAtAnyPointOfTheStartLeavesNoNodeWaiting) {
  for_each_seed(600, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    cluster.network().connect_all();
    cluster.network().run_for(300);
    const Seat proposer = cluster.any(), victim = seed % 3 == 0 ? proposer : seed % 3 == 1 ? Seat(0) : cluster.any();
    const bool silent = cluster.random().one_in(2);
    cluster.start(proposer, "run-1");
    const std::uint64_t after_frames = cluster.network().delivered() + cluster.random().between(0, 3 * nodes);
    cluster.run_until([&] { return cluster.network().delivered() >= after_frames; }, 2'000);
    cluster.kill(victim, silent);
    expect_settled(cluster, {proposer});
    for (const Seat seat : cluster.living()) {
      Outcome& outcome = cluster.node(seat).outcome("run-1");
      if (!outcome.began || !outcome.end) continue;
      EXPECT_EQ(outcome.end, schema::RunState::kInterrupted) << "it goes on without " << cluster.name(victim);
    }
    const StartAnswer* answer = cluster.network().dead(proposer) ? nullptr : cluster.answer(proposer);
    if (answer != nullptr && !answer->status.ok()) {
      EXPECT_NE(answer->status.error().message.find(cluster.name(victim)), std::string::npos)
          << answer->status.error().message;
    }
    // The victim comes back, and a start from anywhere works.
    cluster.restart(victim);
    cluster.network().run_for(15'000);
    expect_settled(cluster, {});
    for (const Seat seat : cluster.living()) {
      if (cluster.node(seat).membership().idle()) continue;
      EXPECT_TRUE(cluster.node(seat).stop("run-1").ok());
    }
    EXPECT_TRUE(cluster.run_until([&] { return cluster.all_idle(); }, 5'000)) << "it does not stop";
    const Seat next = cluster.any_but(proposer);
    cluster.start(next, "run-2");
    EXPECT_TRUE(cluster.runs_within(10'000, "run-2")) << "no second start";
  });
}

TEST(StartScenarios, AnAbsentNodeIsNamedAfterTheStartTimeout) {
  for_each_seed(200, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    const Seat proposer = cluster.any(), absent = cluster.any_but(proposer);
    cluster.kill(absent, false);
    cluster.network().connect_all();
    cluster.start(proposer, "run-1");
    expect_settled(cluster, {proposer});
    if (testing::Test::HasFailure()) return;
    EXPECT_EQ(cluster.node(proposer).outcome("run-1").reason,
              cluster.name(absent) + " did not connect within 30 s; is it running and reachable?");
    EXPECT_EQ(cluster.answer(proposer)->status.error().kind, ErrorKind::kRunFailed);
    EXPECT_LE(cluster.answer(proposer)->time_ms, 30'200u);
    EXPECT_EQ(cluster.runs_begun(), 0u);
  });
}

TEST(StartScenarios, LostConnectionsPartitionsAndPausesNeverHangAStart) {
  for_each_seed(600, {2, 24}, [](std::uint64_t seed, std::size_t nodes) {
    NodeOptions options;
    options.run_ms = 40'000;
    options.prepare_timeout_ms = 20'000;
    Cluster cluster({nodes, seed}, options);
    cluster.network().connect_all();
    std::vector<Seat> starters;
    for (std::size_t i = 0; i < std::min<std::size_t>(nodes, 3); ++i) {
      const Seat seat = cluster.any();
      if (std::find(starters.begin(), starters.end(), seat) != starters.end()) continue;
      starters.push_back(seat);
      cluster.network().at(cluster.random().between(0, 400'000),
                           [&, seat] { cluster.start(seat, "run-" + cluster.name(seat)); });
    }
    for (int trouble = 0; trouble < 3; ++trouble) {
      const std::uint64_t from_us = cluster.random().between(0, 800'000);
      const std::uint64_t until_us = from_us + cluster.random().between(1'000, 15'000'000);
      const Seat a = cluster.any(), b = cluster.any_but(a);
      Network& network = cluster.network();
      switch (cluster.random().between(0, 3)) {
        case 0:
          network.at(from_us, [&network, a, b] { network.break_connection(a, b); });
          break;
        case 1:
          network.at(from_us, [&network, a, b] { network.block(a, b, true); });
          network.at(until_us, [&network, a, b] { network.block(a, b, false); });
          break;
        case 2:
          for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
            network.at(from_us, [&network, x = x, y = y] { network.block(x, y, true); });
            network.at(until_us, [&network, x = x, y = y] { network.block(x, y, false); });
          }
          break;
        default:
          network.at(from_us, [&network, a] { network.pause(a, true); });
          network.at(until_us, [&network, a] { network.pause(a, false); });
      }
    }
    cluster.network().run_for(20'000);
    expect_settled(cluster, starters);
    // No run completes anywhere without having begun on as many nodes as can continue without the others.
    for (const Seat starter : starters) {
      const std::string id = "run-" + cluster.name(starter);
      std::size_t began = 0, completed = 0;
      for (const Seat seat : cluster.seats()) {
        began += cluster.node(seat).outcome(id).began;
        completed += cluster.node(seat).outcome(id).end == schema::RunState::kCompleted;
      }
      EXPECT_TRUE(completed == 0 || 2 * began >= nodes)
          << id << " began on " << began << ", completed on " << completed;
    }
  });
}

// Nodes bind their ports anew while they have nothing prepared, and that costs their links.
TEST(StartScenarios, ARotatedKeyDelaysAStartAndDoesNotEndIt) {
  for_each_seed(400, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    NodeOptions options;
    options.links_rekey = true;
    Cluster cluster({nodes, seed}, options);
    cluster.network().connect_all();
    cluster.network().run_for(300);
    const Seat proposer = cluster.any();
    cluster.start(proposer, "run-1");
    for (int rotation = 0; rotation < 2; ++rotation) {
      const std::uint64_t after_frames = cluster.network().delivered() + cluster.random().between(0, nodes);
      cluster.run_until([&] { return cluster.network().delivered() >= after_frames; }, 2'000);
      const Seat one = cluster.any();
      if (cluster.node(one).membership().state().value_or(schema::RunState::kPending) != schema::RunState::kPending)
        continue;
      for (const Seat peer : cluster.seats())
        if (peer != one) cluster.network().break_connection(one, peer);
    }
    EXPECT_TRUE(cluster.runs_within(10'000));
    ASSERT_NE(cluster.answer(proposer), nullptr);
    EXPECT_TRUE(cluster.answer(proposer)->status.ok()) << cluster.answer(proposer)->status.error().message;
    EXPECT_FALSE(cluster.two_runs_at_once());
  });
}

// Its control thread still sends heartbeats, its node's thread does nothing any more.
TEST(StartScenarios, AProposerThatNeverDecidesHoldsNoNodeForLong) {
  for_each_seed(300, {3, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    cluster.network().connect_all();
    cluster.network().run_for(300);
    const Seat stuck = cluster.any(), stopper = cluster.any_but(stuck);
    cluster.start(stuck, "run-1");
    const auto reserved = [&](Seat seat) { return !cluster.node(seat).membership().idle(); };
    EXPECT_TRUE(cluster.run_until(
        [&] { return std::ranges::all_of(cluster.seats(), reserved) || cluster.node(stuck).running(); }, 2'000));
    if (cluster.node(stuck).running()) return;  // it decided at once
    cluster.node(stuck).stick();
    const std::uint64_t since_ms = cluster.network().now_ms();
    EXPECT_TRUE(cluster.node(stopper).stop("run-1").ok());
    EXPECT_TRUE(cluster.run_until([&] { return !reserved(stopper); }, 5'200)) << "a stop waits for no node";
    const auto others_free = [&] {
      return std::ranges::none_of(cluster.seats(), [&](Seat seat) { return seat != stuck && reserved(seat); });
    };
    EXPECT_TRUE(cluster.run_until(others_free, 20'000));
    EXPECT_LE(cluster.network().now_ms() - since_ms, 15'300u);
    EXPECT_EQ(cluster.runs_begun(), 0u);
  });
}

TEST(StartScenarios, OneOddNodeFailsTheStartForAllAndIsNamed) {
  for_each_seed(200, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    const Seat odd(Random(seed).between(0, nodes - 1));
    const bool refuses = seed % 2 == 0;
    Cluster cluster({nodes, seed}, {}, [&](Network& network, NodeOptions options) {
      if (options.self == odd) {
        options.vote.data_hash = 0xbad;
        options.vote.accepted = !refuses;
        options.vote.kind = ErrorKind::kInvalidJob;
        options.vote.message = refuses ? options.names[odd] + " has no data" : "";
      }
      return std::make_unique<VirtualNode>(network, std::move(options));
    });
    cluster.network().connect_all();
    const Seat proposer = cluster.any();
    cluster.start(proposer, "run-1");
    expect_settled(cluster, {proposer});
    if (testing::Test::HasFailure()) return;
    const Error& error = cluster.answer(proposer)->status.error();
    EXPECT_EQ(error.kind, ErrorKind::kInvalidJob);
    EXPECT_NE(error.message.find(cluster.name(odd)), std::string::npos) << error.message;
    if (!refuses) {
      EXPECT_EQ(error.message.rfind("data differ: ", 0), 0u) << error.message;
    }
    EXPECT_EQ(cluster.runs_begun(), 0u);
    for (const Seat seat : cluster.seats()) EXPECT_TRUE(cluster.node(seat).outcome("run-1").dropped);
  });
}

TEST(StartScenarios, AStopAtAnyMomentOfTheStartStopsIt) {
  for_each_seed(300, {1, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    cluster.network().connect_all();
    const Seat proposer = cluster.any(), stopper = cluster.any();
    cluster.start(proposer, "run-1");
    cluster.network().run_for(cluster.random().between(0, 600));
    const bool known = cluster.node(stopper).membership().current() != nullptr;
    EXPECT_EQ(cluster.node(stopper).stop("run-1").ok(), known);
    if (!known) {
      EXPECT_TRUE(cluster.runs_within(5'000));
      EXPECT_TRUE(cluster.node(stopper).stop("run-1").ok());
    }
    EXPECT_TRUE(cluster.run_until([&] { return cluster.all_idle(); }, 2'000));
    for (const Seat seat : cluster.seats()) {
      const Outcome& outcome = cluster.node(seat).outcome("run-1");
      if (outcome.end) {
        EXPECT_EQ(outcome.end, schema::RunState::kStopped) << outcome.reason;
      }
    }
    expect_settled(cluster, {proposer});
  });
}

}  // namespace
}  // namespace tg::simulation
