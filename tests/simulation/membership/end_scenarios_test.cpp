// Ends of a running run on a virtual network: whatever happens, all survivors agree in time on who was to blame.
#include "tests/simulation/simulator/cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kPeerTimeoutMs = 10'000;
constexpr std::uint64_t kVerdictMs = kPeerTimeoutMs + 1'000;  // what the README promises

#define TG_SEED(seed, nodes) \
  SCOPED_TRACE("TGD_SEED=" + std::to_string(seed) + " with " + std::to_string(nodes) + " nodes")

// A run in progress on all nodes, some time after its begin.
void run_for_a_while(Cluster& cluster) {
  cluster.start_and_wait(cluster.any(), "run-1");
  cluster.network().run_for(cluster.random().between(0, 2'000));
}

// All who live and are awake end FAILED within `within_ms`, with one of these names in the reason.
void expect_failed_naming(Cluster& cluster, const std::vector<Seat>& blamed, std::uint64_t within_ms) {
  const std::uint64_t since_ms = cluster.network().now_ms();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, within_ms)) << "not all have ended";
  for (const Seat seat : cluster.living()) {
    const Outcome& outcome = cluster.node(seat).outcome("run-1");
    EXPECT_EQ(outcome.end, schema::RunState::kFailed) << cluster.name(seat);
    EXPECT_TRUE(std::any_of(blamed.begin(), blamed.end(),
                            [&](Seat who) { return outcome.reason.find(cluster.name(who)) != std::string::npos; }))
        << cluster.name(seat) << " says: " << outcome.reason;
    EXPECT_LE(outcome.end_ms, since_ms + within_ms);
  }
  EXPECT_FALSE(cluster.two_runs_at_once());
}

TEST(EndScenarios, ADeadProcessIsNamedAtOnceAndADeadMachineInTime) {
  for (const std::uint64_t seed : seeds(300)) {
    const std::size_t nodes = draw_size(seed, 2, 64);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    const bool silent = seed % 2 == 0;
    cluster.kill(victim, silent);
    expect_failed_naming(cluster, {victim}, silent ? kVerdictMs : 100);
    if (testing::Test::HasFailure()) return;
    // Back again: the next run has all members.
    cluster.restart(victim);
    cluster.network().run_for(1'000);
    cluster.start(cluster.any_but(victim), "run-2");
    EXPECT_TRUE(cluster.run_until([&] { return cluster.all_run("run-2"); }, 10'000)) << "no second start";
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, APausedNodeIsNamedAndAccusesNobodyWhenItWakes) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 32);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    expect_failed_naming(cluster, {victim}, kVerdictMs);
    cluster.network().run_for(cluster.random().between(0, 60'000));
    cluster.network().pause(victim, false);
    expect_failed_naming(cluster, {victim}, kVerdictMs);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, AShortPauseHarmsNobody) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 24);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    cluster.network().run_for(cluster.random().between(1, 9'000));
    cluster.network().pause(victim, false);
    cluster.network().run_for(30'000);
    EXPECT_TRUE(cluster.all_run("run-1"));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, APartitionIsNamedByOneOfItsEnds) {
  for (const std::uint64_t seed : seeds(300)) {
    const std::size_t nodes = draw_size(seed, 2, 32);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().block(a, b, true);
    const bool both = seed % 2 == 0;
    if (both) cluster.network().block(b, a, true);
    // In one direction only a can be the one that is not heard.
    expect_failed_naming(cluster, both ? std::vector<Seat>{a, b} : std::vector<Seat>{a}, kVerdictMs);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, AnIsolatedNodeAndTheRestBlameEachOther) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 32);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    const bool in = seed % 3 != 0, out = seed % 3 != 1;  // one direction of its cable, or both
    for (const Seat seat : cluster.seats()) {
      if (seat == victim) continue;
      if (in) cluster.network().block(seat, victim, true);
      if (out) cluster.network().block(victim, seat, true);
    }
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, kVerdictMs));
    for (const Seat seat : cluster.living()) {
      const Outcome& outcome = cluster.node(seat).outcome("run-1");
      EXPECT_EQ(outcome.end, schema::RunState::kFailed);
      if (seat != victim && out) {
        EXPECT_NE(outcome.reason.find(cluster.name(victim)), std::string::npos) << outcome.reason;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, ALostConnectionEndsTheRunNamingIt) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 32);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().break_connection(a, b);
    expect_failed_naming(cluster, {a, b}, 1'000);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, AHangingEngineIsNamedWithItsPhase) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 1, 16);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    cluster.node(victim).hang(schema::Phase::kBackward);
    expect_failed_naming(cluster, {victim}, 62'000);
    for (const Seat seat : cluster.living())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").reason,
                cluster.name(victim) + " is stuck in backward of step 0 for 60 s");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, AStopAtAnyNodeStopsAll) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 1, 64);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    if (seed % 2) {
      EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    }
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, 1'000));
    for (const Seat seat : cluster.seats())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kStopped);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, AShutDownIsNamedAtOnce) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 1, 64);
    TG_SEED(seed, nodes);
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    const Seat victim = cluster.any();
    cluster.node(victim).shut_down();
    expect_failed_naming(cluster, {victim}, 100);
    for (const Seat seat : cluster.living())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").reason, cluster.name(victim) + " was shut down");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EndScenarios, TheSameSeedGivesTheSameHistory) {
  const auto history = [](std::uint64_t seed) {
    Cluster cluster({5, seed}, {});
    run_for_a_while(cluster);
    cluster.kill(Seat(2), true);
    cluster.run_until([&] { return cluster.ended("run-1"); }, kVerdictMs);
    std::string text = std::to_string(cluster.network().events());
    for (const Seat seat : cluster.living()) text += " " + std::to_string(cluster.node(seat).outcome("run-1").end_ms);
    return text;
  };
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

}  // namespace
}  // namespace tg::simulation
