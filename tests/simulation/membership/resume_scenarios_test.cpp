// Runs are resumed on a virtual network: all nodes die and return, some die on the way, several are asked at once.
#include <algorithm>

#include "tests/simulation/simulator/cluster.h"

namespace tg::simulation {
namespace {

using schema::RunState;
using schema::StateId;

constexpr std::uint64_t kSettleMs = 60'000;

StateId state(std::uint32_t lineage, std::uint64_t step) { return {lineage, 1, step, lineage * 1'000'000 + step}; }

void restart_all(Cluster& cluster) {
  for (const Seat seat : cluster.seats())
    if (cluster.network().dead(seat)) cluster.restart(seat);
  cluster.network().run_for(15'000);
}

// run-1 begins, every disk gets states (a drawn one may lack the newest), and all nodes are killed and started again.
// Returns the newest that all have.
StateId after_the_power_was_out(Cluster& cluster) {
  cluster.start_and_wait(cluster.any(), "run-1");
  cluster.network().run_for(cluster.random().between(0, 500));
  const bool all_have_it = cluster.random().one_in(2);
  const Seat behind = cluster.any();
  for (const Seat seat : cluster.seats()) {
    auto& states = cluster.disk(seat).states["run-1"];
    states = {state(1, 600), state(1, 300)};
    if (all_have_it || seat != behind) states.insert(states.begin(), state(1, 900));
    cluster.kill(seat, cluster.random().one_in(2));
  }
  restart_all(cluster);
  for (const Seat seat : cluster.seats()) {
    EXPECT_TRUE(cluster.disk(seat).runs.begin()->second.end.truth.state == RunState::kInterrupted ||
                cluster.disk(seat).runs.begin()->second.end.truth.state == RunState::kFailed);
  }
  return state(1, all_have_it ? 900 : 600);
}

void expect_settled(Cluster& cluster) {
  EXPECT_TRUE(cluster.run_until([&] { return cluster.all_idle(); }, kSettleMs)) << "a node hangs";
  EXPECT_FALSE(cluster.two_runs_at_once());
}

TEST(ResumeScenarios, AfterThePowerWasOutAnyNodeResumes) {
  for_each_seed(300, {1, 64}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    const StateId newest = after_the_power_was_out(cluster);
    const Seat asked = cluster.any();
    cluster.resume(asked, "run-1");
    EXPECT_TRUE(cluster.runs_within(10'000)) << "it does not go on";
    ASSERT_NE(cluster.answer(asked), nullptr);
    EXPECT_TRUE(cluster.answer(asked)->status.ok());
    for (const Seat seat : cluster.seats()) {
      EXPECT_EQ(cluster.node(seat).outcome("run-1").from, newest);
      EXPECT_EQ(cluster.disk(seat).lineage_of("run-1"), 2u);
    }
    EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    EXPECT_TRUE(cluster.ends_within(1'000));
    for (const Seat seat : cluster.seats()) EXPECT_EQ(cluster.node(seat).outcome("run-1").end, RunState::kStopped);
    expect_settled(cluster);
  });
}

// A node that was away when the others ended the run says what it knows of the old key, at any moment.
TEST(ResumeScenarios, AShutDownOfAllIsInterruptedAndResumed) {
  for_each_seed(200, {2, 16}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    cluster.start_and_wait(cluster.any(), "run-1");
    for (const Seat seat : cluster.seats()) {
      cluster.disk(seat).states["run-1"] = {state(1, 900)};
      cluster.node(seat).shut_down();
      cluster.network().run_for(cluster.random().between(0, 60));
    }
    EXPECT_TRUE(cluster.ends_within(5'000));
    for (const Seat seat : cluster.seats()) {
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, RunState::kInterrupted);
      EXPECT_NE(cluster.node(seat).outcome("run-1").reason.find(" was shut down"), std::string::npos);
    }
    for (const Seat seat : cluster.seats()) cluster.kill(seat, false);
    restart_all(cluster);
    const Seat asked = cluster.any();
    cluster.resume(asked, "run-1");
    EXPECT_TRUE(cluster.runs_within(10'000)) << "it does not go on";
    EXPECT_TRUE(cluster.node(asked).stop("run-1").ok());
    EXPECT_TRUE(cluster.ends_within(1'000));
    expect_settled(cluster);
  });
}

// After a drawn number of the resume's frames a node dies. Then all come back, and it is resumed once more.
TEST(ResumeScenarios, ADeathAtAnyPointLosesNothing) {
  std::size_t begun = 0, not_begun = 0, older = 0;
  for_each_seed(600, {2, 24}, [&](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    const StateId newest = after_the_power_was_out(cluster);
    const Seat asked = cluster.any(), victim = seed % 3 == 0 ? asked : cluster.any();
    cluster.resume(asked, "run-1");
    const std::uint64_t after_frames = cluster.network().delivered() + cluster.random().between(0, 5 * nodes);
    cluster.run_until([&] { return cluster.network().delivered() >= after_frames; }, 2'000);
    cluster.kill(victim, cluster.random().one_in(2));
    // Where the run has begun it goes on without the victim, or waits for it; elsewhere no node takes part in it.
    const auto resolve_outcome = [&] {
      return std::ranges::all_of(cluster.living(), [&](Seat seat) {
        const auto state = cluster.node(seat).membership().state();
        return !state || *state == RunState::kRunning || *state == RunState::kPaused;
      });
    };
    EXPECT_TRUE(cluster.run_until(resolve_outcome, kSettleMs)) << "a node hangs";
    cluster.network().run_for(15'000);
    EXPECT_TRUE(resolve_outcome()) << "a node hangs";
    EXPECT_FALSE(cluster.two_runs_at_once());
    if (asked != victim) {
      EXPECT_NE(cluster.answer(asked), nullptr) << "no answer";
    }
    std::vector<std::uint32_t> lineages;
    for (const Seat seat : cluster.seats()) {
      lineages.push_back(cluster.disk(seat).lineage_of("run-1"));
      (lineages.back() == 2 ? begun : not_begun) += 1;
    }
    for (const Seat seat : cluster.living()) cluster.kill(seat, cluster.random().one_in(2));
    restart_all(cluster);
    // If the run has begun on some nodes only, a resume at a node that does not know of that is refused.
    const auto most = std::ranges::max_element(lineages), least = std::ranges::min_element(lineages);
    if (*least < *most) {
      ++older;
      const Seat behind(static_cast<std::size_t>(least - lineages.begin()));
      cluster.resume(behind, "run-1");
      EXPECT_TRUE(cluster.run_until([&] { return cluster.answer(behind) != nullptr; }, 10'000));
      const Status& refused = cluster.answer(behind)->status;
      ASSERT_FALSE(refused.ok());
      EXPECT_NE(refused.error().message.find("knows a later lineage of run run-1"), std::string::npos)
          << refused.error().message;
      expect_settled(cluster);
    }
    cluster.resume(Seat(static_cast<std::size_t>(most - lineages.begin())), "run-1");
    EXPECT_TRUE(cluster.runs_within(10'000)) << "it does not go on";
    for (const Seat seat : cluster.seats()) {
      EXPECT_EQ(cluster.node(seat).outcome("run-1").from, newest);
      EXPECT_EQ(cluster.disk(seat).lineage_of("run-1"), *most + 1);
    }
    EXPECT_FALSE(cluster.two_runs_at_once());
  });
  std::printf("%zu members had begun, %zu had not; %zu resumes were of an older beginning\n", begun, not_begun, older);
  EXPECT_GT(begun, 0u);
  EXPECT_GT(not_begun, 0u);
  EXPECT_GT(older, 0u);
}

TEST(ResumeScenarios, ExactlyOneOfConcurrentResumesAndStartsRuns) {
  for_each_seed(300, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    after_the_power_was_out(cluster);
    std::vector<Seat> asked{cluster.any()};
    while (asked.size() < std::min<std::size_t>(nodes, 3)) {
      const Seat seat = cluster.any();
      if (std::ranges::find(asked, seat) == asked.end()) asked.push_back(seat);
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (i == 1 && seed % 2)
        cluster.start(asked[i], "run-2");
      else
        cluster.resume(asked[i], "run-1");
    }
    const auto all_answered = [&] {
      return std::ranges::all_of(asked, [&](Seat seat) { return cluster.answer(seat) != nullptr; });
    };
    EXPECT_TRUE(cluster.run_until(all_answered, 10'000));
    if (testing::Test::HasFailure()) return;
    const auto won = [&](Seat seat) { return cluster.answer(seat)->status.ok(); };
    ASSERT_EQ(std::ranges::count_if(asked, won), 1);
    const std::string winner = cluster.answer(*std::ranges::find_if(asked, won))->run_id;
    EXPECT_TRUE(cluster.runs_within(1'000, winner));
    EXPECT_EQ(cluster.disk(asked[0]).lineage_of("run-1"), winner == "run-1" ? 2u : 1u);
    EXPECT_TRUE(cluster.node(cluster.any()).stop(winner).ok());
    expect_settled(cluster);
  });
}

TEST(ResumeScenarios, ANodeThatHasNothingIsNamedAndNothingChanges) {
  for_each_seed(200, {2, 32}, [](std::uint64_t seed, std::size_t nodes) {
    Cluster cluster({nodes, seed}, {});
    after_the_power_was_out(cluster);
    const Seat bare = cluster.any(), asked = cluster.any();
    cluster.disk(bare).states.clear();
    cluster.resume(asked, "run-1");
    EXPECT_TRUE(cluster.run_until([&] { return cluster.answer(asked) != nullptr; }, 10'000));
    ASSERT_FALSE(cluster.answer(asked)->status.ok());
    const Error& error = cluster.answer(asked)->status.error();
    EXPECT_EQ(error.kind, ErrorKind::kNotFound);
    if (bare.index() < 8) {
      EXPECT_NE(error.message.find(cluster.name(bare) + " has none"), std::string::npos) << error.message;
    }
    for (const Seat seat : cluster.seats()) EXPECT_EQ(cluster.disk(seat).lineage_of("run-1"), 1u);
    expect_settled(cluster);
  });
}

TEST(ResumeScenarios, LostConnectionsAndPausesNeverHangAResume) {
  for_each_seed(300, {2, 16}, [](std::uint64_t seed, std::size_t nodes) {
    NodeOptions options;
    options.run_ms = 20'000;
    options.prepare_timeout_ms = 20'000;
    Cluster cluster({nodes, seed}, options);
    after_the_power_was_out(cluster);
    const Seat asked = cluster.any();
    cluster.resume(asked, "run-1");
    for (int trouble = 0; trouble < 2; ++trouble) {
      const std::uint64_t from_us = cluster.network().now_us() + cluster.random().between(0, 400'000);
      const std::uint64_t until_us = from_us + cluster.random().between(1'000, 12'000'000);
      const Seat a = cluster.any(), b = cluster.any_but(a);
      Network& network = cluster.network();
      switch (cluster.random().between(0, 2)) {
        case 0:
          network.at(from_us, [&network, a, b] { network.break_connection(a, b); });
          break;
        case 1:
          network.at(from_us, [&network, a, b] { network.block(a, b, true); });
          network.at(until_us, [&network, a, b] { network.block(a, b, false); });
          break;
        default:
          network.at(from_us, [&network, a] { network.pause(a, true); });
          network.at(until_us, [&network, a] { network.pause(a, false); });
      }
    }
    cluster.network().run_for(20'000);
    expect_settled(cluster);
    EXPECT_NE(cluster.answer(asked), nullptr);
  });
}

}  // namespace
}  // namespace tg::simulation
