// Ends of a running run on a virtual network: whatever happens, all survivors agree in time on who was to blame.
#include "tests/simulation/simulator/cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kPeerTimeoutMs = 10'000;
constexpr std::uint64_t kVerdictMs = kPeerTimeoutMs + 1'000;  // what the README promises

// A run in progress on all nodes, some time after its begin.
void run_for_a_while(Cluster& cluster) {
  cluster.start_and_wait(cluster.any(), "run-1");
  cluster.network().run_for(cluster.random().between(0, 2'000));
}

// What becomes of such a run, with so many seeds.
void in_a_run(std::size_t count, const Sizes& sizes, const std::function<void(Cluster& cluster)>& scenario) {
  for_each_seed(count, sizes, [&](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    run_for_a_while(cluster);
    scenario(cluster);
  });
}

// All who live and are awake end so within `within_ms`, with one of these names in the reason.
void expect_end_naming(Cluster& cluster, schema::RunState state, const std::vector<Seat>& blamed,
                       std::uint64_t within_ms) {
  const std::uint64_t since_ms = cluster.network().now_ms();
  EXPECT_TRUE(cluster.ends_within(within_ms)) << "not all have ended";
  for (const Seat seat : cluster.living()) {
    const Outcome& outcome = cluster.node(seat).outcome("run-1");
    EXPECT_EQ(outcome.end, state) << cluster.name(seat);
    EXPECT_TRUE(std::any_of(blamed.begin(), blamed.end(),
                            [&](Seat who) { return outcome.reason.find(cluster.name(who)) != std::string::npos; }))
        << cluster.name(seat) << " says: " << outcome.reason;
    EXPECT_LE(outcome.end_ms, since_ms + within_ms);
  }
  EXPECT_FALSE(cluster.two_runs_at_once());
}

void expect_failed_naming(Cluster& cluster, const std::vector<Seat>& blamed, std::uint64_t within_ms) {
  expect_end_naming(cluster, schema::RunState::kFailed, blamed, within_ms);
}

TEST(EndScenarios, ADeadProcessIsNamedAtOnceAndADeadMachineInTime) {
  in_a_run(300, {2, 64}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    const bool silent = cluster.seed() % 2 == 0;
    cluster.kill(victim, silent);
    expect_failed_naming(cluster, {victim}, silent ? kVerdictMs : 100);
    if (testing::Test::HasFailure()) return;
    // Back again: the next run has all members.
    cluster.restart(victim);
    cluster.network().run_for(1'000);
    cluster.start(cluster.any_but(victim), "run-2");
    EXPECT_TRUE(cluster.runs_within(10'000, "run-2")) << "no second start";
  });
}

TEST(EndScenarios, APausedNodeIsNamedAndAccusesNobodyWhenItWakes) {
  in_a_run(200, {2, 32}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    expect_failed_naming(cluster, {victim}, kVerdictMs);
    cluster.network().run_for(cluster.random().between(0, 60'000));
    cluster.network().pause(victim, false);
    expect_failed_naming(cluster, {victim}, kVerdictMs);
  });
}

TEST(EndScenarios, AShortPauseHarmsNobody) {
  in_a_run(200, {2, 24}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    cluster.network().run_for(cluster.random().between(1, 9'000));
    cluster.network().pause(victim, false);
    cluster.network().run_for(30'000);
    EXPECT_TRUE(cluster.all_run("run-1"));
  });
}

TEST(EndScenarios, APartitionIsNamedByOneOfItsEnds) {
  in_a_run(300, {2, 32}, [](Cluster& cluster) {
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().block(a, b, true);
    const bool both = cluster.seed() % 2 == 0;
    if (both) cluster.network().block(b, a, true);
    // In one direction only a can be the one that is not heard.
    expect_failed_naming(cluster, both ? std::vector<Seat>{a, b} : std::vector<Seat>{a}, kVerdictMs);
  });
}

TEST(EndScenarios, AnIsolatedNodeAndTheRestBlameEachOther) {
  in_a_run(200, {2, 32}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    const bool in = cluster.seed() % 3 != 0, out = cluster.seed() % 3 != 1;  // one direction of its cable, or both
    for (const Seat seat : cluster.seats()) {
      if (seat == victim) continue;
      if (in) cluster.network().block(seat, victim, true);
      if (out) cluster.network().block(victim, seat, true);
    }
    EXPECT_TRUE(cluster.ends_within(kVerdictMs));
    for (const Seat seat : cluster.living()) {
      const Outcome& outcome = cluster.node(seat).outcome("run-1");
      EXPECT_EQ(outcome.end, schema::RunState::kFailed);
      if (seat != victim && out) {
        EXPECT_NE(outcome.reason.find(cluster.name(victim)), std::string::npos) << outcome.reason;
      }
    }
  });
}

TEST(EndScenarios, ALostConnectionEndsTheRunNamingIt) {
  in_a_run(200, {2, 32}, [](Cluster& cluster) {
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().break_connection(a, b);
    expect_failed_naming(cluster, {a, b}, 1'000);
  });
}

TEST(EndScenarios, AHangingEngineIsNamedWithItsPhase) {
  in_a_run(100, {1, 16}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.node(victim).hang(schema::Phase::kBackward);
    expect_failed_naming(cluster, {victim}, 62'000);
    for (const Seat seat : cluster.living())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").reason,
                cluster.name(victim) + " is stuck in backward of step 0 for 60 s");
  });
}

TEST(EndScenarios, AStopAtAnyNodeStopsAll) {
  in_a_run(200, {1, 64}, [](Cluster& cluster) {
    EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    if (cluster.seed() % 2) {
      EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    }
    EXPECT_TRUE(cluster.ends_within(1'000));
    for (const Seat seat : cluster.seats())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kStopped);
  });
}

TEST(EndScenarios, AShutDownIsNamedAtOnce) {
  in_a_run(200, {1, 64}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.node(victim).shut_down();
    expect_end_naming(cluster, schema::RunState::kInterrupted, {victim}, 100);
    for (const Seat seat : cluster.living())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").reason, cluster.name(victim) + " was shut down");
  });
}

TEST(EndScenarios, TheSameSeedGivesTheSameHistory) {
  const auto history = [](std::uint64_t seed) {
    Cluster cluster({5, seed}, {});
    run_for_a_while(cluster);
    cluster.kill(Seat(2), true);
    cluster.ends_within(kVerdictMs);
    std::string text = std::to_string(cluster.network().events());
    for (const Seat seat : cluster.living()) text += " " + std::to_string(cluster.node(seat).outcome("run-1").end_ms);
    return text;
  };
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

}  // namespace
}  // namespace tg::simulation
