// An active run on a virtual network: whatever happens to one of its nodes, the others continue in time and agree on
// the members.
#include <algorithm>

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

std::vector<Seat> but(const Cluster& cluster, const std::vector<Seat>& victims) {
  std::vector<Seat> seats;
  for (const Seat seat : cluster.seats())
    if (std::ranges::find(victims, seat) == victims.end()) seats.push_back(seat);
  return seats;
}

// These are the members now, and train.
bool go_on(Cluster& cluster, const std::vector<Seat>& members) {
  return std::ranges::all_of(members, [&](Seat seat) {
    daemon::Membership& membership = cluster.node(seat).membership();
    return membership.state() == schema::RunState::kRunning && membership.view().seats() == members;
  });
}

// All but these continue without them, or report in time that they cannot.
void expect_to_go_on_without(Cluster& cluster, const std::vector<Seat>& victims, std::uint64_t within_ms) {
  const std::vector<Seat> rest = but(cluster, victims);
  const bool enough = daemon::is_quorum(daemon::View::of_all(cluster.size()), rest);
  EXPECT_TRUE(cluster.run_until(
      [&] {
        if (enough) return go_on(cluster, rest);
        return std::ranges::all_of(
            rest, [&](Seat seat) { return cluster.node(seat).membership().state() == schema::RunState::kPaused; });
      },
      within_ms));
  EXPECT_FALSE(cluster.two_runs_at_once());
}

// No node has ended FAILED, and the survivors agree on one view with at least so many members.
void expect_one_view(Cluster& cluster, std::size_t least) {
  std::optional<daemon::View> view;
  for (const Seat seat : cluster.living()) {
    const Outcome& outcome = cluster.node(seat).outcome("run-1");
    if (outcome.end) {
      EXPECT_EQ(*outcome.end, schema::RunState::kInterrupted) << outcome.reason;
      continue;
    }
    daemon::Membership& membership = cluster.node(seat).membership();
    if (membership.state() != schema::RunState::kRunning) continue;
    if (!view) view = membership.view();
    EXPECT_EQ(membership.view().number(), view->number());
    EXPECT_EQ(membership.view().seats(), view->seats());
  }
  ASSERT_TRUE(view.has_value()) << "no node continues";
  EXPECT_GE(view->size(), least);
}

TEST(FailureScenarios, ADeadProcessIsReplacedAtOnceADeadMachineWithinPeerTimeout) {
  in_a_run(300, {2, 64}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    const bool silent = cluster.seed() % 2 == 0;
    cluster.kill(victim, silent);
    expect_to_go_on_without(cluster, {victim}, silent ? kVerdictMs : 1'100);
    if (testing::Test::HasFailure()) return;
    // The victim returns: where its vote was needed the others continue with it. The next run has all members.
    cluster.restart(victim);
    EXPECT_TRUE(cluster.run_until([&] { return go_on(cluster, but(cluster, {victim})); }, 5'000));
    EXPECT_TRUE(cluster.node(cluster.any_but(victim)).stop("run-1").ok());
    EXPECT_TRUE(cluster.ends_within(1'000));
    cluster.network().run_for(1'000);
    EXPECT_EQ(cluster.node(victim).membership().idle(), true);
    cluster.start(cluster.any_but(victim), "run-2");
    EXPECT_TRUE(cluster.runs_within(10'000, "run-2")) << "no second start";
  });
}

TEST(FailureScenarios, AFrozenProcessIsEvictedAndSuspectsNoPeer) {
  in_a_run(200, {2, 32}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    expect_to_go_on_without(cluster, {victim}, kVerdictMs + 2'000);
    cluster.network().run_for(cluster.random().between(0, 60'000));
    cluster.network().pause(victim, false);
    cluster.network().run_for(10'000);
    const std::vector<Seat> rest = but(cluster, {victim});
    if (!daemon::is_quorum(daemon::View::of_all(cluster.size()), rest)) {
      EXPECT_TRUE(go_on(cluster, but(cluster, {}))) << "it was needed";
      return;
    }
    EXPECT_TRUE(go_on(cluster, rest));
    const Outcome& outcome = cluster.node(victim).outcome("run-1");
    EXPECT_EQ(outcome.end, schema::RunState::kInterrupted);
    EXPECT_NE(outcome.reason.find(cluster.name(victim) + " was evicted: no sign of life from"), std::string::npos)
        << outcome.reason;
  });
}

TEST(FailureScenarios, AShortPauseEvictsNoMember) {
  in_a_run(200, {2, 24}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    cluster.network().run_for(cluster.random().between(1, 9'000));
    cluster.network().pause(victim, false);
    cluster.network().run_for(30'000);
    EXPECT_TRUE(cluster.all_run("run-1"));
  });
}

TEST(FailureScenarios, OneOfTwoUnlinkedMembersIsEvicted) {
  in_a_run(300, {2, 32}, [](Cluster& cluster) {
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().block(a, b, true);
    if (cluster.seed() % 2 == 0) cluster.network().block(b, a, true);
    cluster.network().run_for(kVerdictMs + 30'000);
    expect_one_view(cluster, cluster.size() - 1);
  });
}

TEST(FailureScenarios, AnIsolatedNodeIsEvicted) {
  in_a_run(200, {3, 32}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    const bool in = cluster.seed() % 3 != 0, out = cluster.seed() % 3 != 1;  // one direction of its cable, or both
    for (const Seat seat : cluster.seats()) {
      if (seat == victim) continue;
      if (in) cluster.network().block(seat, victim, true);
      if (out) cluster.network().block(victim, seat, true);
    }
    cluster.network().run_for(kVerdictMs + 30'000);
    EXPECT_TRUE(go_on(cluster, but(cluster, {victim})));
  });
}

TEST(FailureScenarios, ALostConnectionEvictsOneMemberAtMost) {
  in_a_run(200, {2, 32}, [](Cluster& cluster) {
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().break_connection(a, b);
    cluster.network().run_for(20'000);
    expect_one_view(cluster, cluster.size() - 1);
  });
}

TEST(FailureScenarios, AStuckEngineIsNamedWithItsPhase) {
  in_a_run(100, {1, 16}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.node(victim).hang(schema::Phase::kBackward);
    cluster.network().run_for(70'000);
    const std::string why = cluster.name(victim) + " is stuck in backward of step 0 for 60 s";
    const Outcome& outcome = cluster.node(victim).outcome("run-1");
    EXPECT_EQ(outcome.end, cluster.size() == 1 ? schema::RunState::kFailed : schema::RunState::kInterrupted);
    EXPECT_NE(outcome.reason.find(why), std::string::npos) << outcome.reason;
    EXPECT_TRUE(go_on(cluster, but(cluster, {victim})));
  });
}

TEST(FailureScenarios, AStopAtAnyNodeStopsAll) {
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

TEST(EndScenarios, SurvivorsContinueAfterAShutdownAtOnce) {
  in_a_run(200, {1, 64}, [](Cluster& cluster) {
    const Seat victim = cluster.any();
    cluster.node(victim).shut_down();
    EXPECT_TRUE(cluster.run_until([&] { return go_on(cluster, but(cluster, {victim})); }, 100));
    cluster.network().run_for(3'000);
    EXPECT_EQ(cluster.node(victim).outcome("run-1").end, schema::RunState::kInterrupted);
    EXPECT_EQ(cluster.node(victim).outcome("run-1").reason, cluster.name(victim) + " was shut down");
    EXPECT_TRUE(go_on(cluster, but(cluster, {victim})));
  });
}

TEST(FailureScenarios, TheSameSeedGivesTheSameHistory) {
  const auto history = [](std::uint64_t seed) {
    Cluster cluster({5, seed}, {});
    run_for_a_while(cluster);
    cluster.kill(Seat(2), true);
    EXPECT_TRUE(cluster.run_until([&] { return go_on(cluster, but(cluster, {Seat(2)})); }, kVerdictMs));
    return std::to_string(cluster.network().events()) + " " + std::to_string(cluster.network().now_ms());
  };
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

}  // namespace
}  // namespace tg::simulation
