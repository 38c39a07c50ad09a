// What goes wrong in the middle of a training run: the others continue, in time and with the same bits, or all nodes
// end and name the faulty node and the place.
#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kPeerTimeoutMs = 10'000;
constexpr std::uint64_t kChangeMs = 4'000;  // a change, where two wait for each other's links too, and a rebuild
constexpr std::uint64_t kEndlessSteps = 1'000'000;

// An active run that would never end, with so many seeds.
void in_a_run(std::size_t count, const Sizes& sizes,
              const std::function<void(TrainingCluster& cluster, const schema::JobSpec& job)>& scenario) {
  for_each_seed(count, sizes, [&](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed});
    const schema::JobSpec job = tiny_job(seed, kEndlessSteps, exchange_of(seed));
    cluster.start_and_wait(cluster.any(), "run-1", job);
    scenario(cluster, job);
  });
}

TEST(TrainingFaults, SurvivorsContinueAfterADeathInAnyPhase) {
  std::uint64_t undone = 0;
  in_a_run(200, {2, 8}, [&](TrainingCluster& cluster, const schema::JobSpec& job) {
    const std::uint64_t frames = cluster.network().delivered() + cluster.random().between(0, 40 * cluster.size());
    EXPECT_TRUE(cluster.run_until([&] { return cluster.network().delivered() >= frames; }, 10'000));
    const Seat victim = cluster.any();
    const bool silent = cluster.random().one_in(2);
    cluster.kill(victim, silent);
    cluster.expect_to_go_on_without({victim}, (silent ? kPeerTimeoutMs : 0) + kChangeMs);
    for (const Seat seat : cluster.living()) undone += cluster.trainer(seat).undone();
    cluster.stop_and_expect_replayed(job);
  });
  if (!seed_asked_for()) {
    EXPECT_GT(undone, 0u);
  }
}

// The first view splits the batch by speed, and so do those that follow.
TEST(TrainingFaults, MembersSplitABatchByTheSpeedInTheirVotes) {
  for_each_seed(60, {2, 8}, [](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed});
    schema::JobSpec job = tiny_job(seed, kEndlessSteps, exchange_of(seed));
    job.split = schema::Split::kSpeed;
    cluster.start_and_wait(cluster.any(), "run-1", job);
    cluster.network().run_for(cluster.random().between(0, 100));
    const std::vector<std::uint16_t> weights = cluster.first_weights(job);
    const auto expect_weights = [&] {
      for (const Seat seat : cluster.living())
        for (const schema::ViewMember& member : cluster.node(seat).membership().view().members())
          EXPECT_EQ(member.weight, weights[member.seat]) << cluster.name(seat);
    };
    expect_weights();
    const Seat victim = cluster.any();
    cluster.kill(victim, false);
    cluster.expect_to_go_on_without({victim}, kChangeMs);
    expect_weights();
    cluster.stop_and_expect_replayed(job);
  });
}

TEST(TrainingFaults, ACableThatCarriesOneWayCostsAMemberAtMostAndPilesUpNothing) {
  in_a_run(100, {2, 8}, [](TrainingCluster& cluster, const schema::JobSpec& job) {
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().block(a, b, true);
    // One of the two is evicted; of two members the junior, or it waits.
    const auto goes_on = [&] {
      for (const Seat without : {a, b})
        if (cluster.train_alone(cluster.all_but({without}), 1) || cluster.size() == 1) return true;
      return false;
    };
    EXPECT_TRUE(cluster.run_until(goes_on, kPeerTimeoutMs + 2 * kChangeMs));
    EXPECT_LE(cluster.network().most_waiting_frames(), 2 * cluster.most_frames_of_two_steps());
    cluster.stop_and_expect_replayed(job);
  });
}

TEST(TrainingFaults, ASleepingMemberIsEvictedUnlessItIsNeeded) {
  in_a_run(100, {2, 8}, [](TrainingCluster& cluster, const schema::JobSpec& job) {
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    cluster.expect_to_go_on_without({victim}, kPeerTimeoutMs + kChangeMs);
    cluster.network().pause(victim, false);
    const bool was_needed = cluster.size() == 2 && victim == Seat(0);
    const auto settled = [&] {
      return was_needed ? cluster.train_alone(cluster.all_but({}), 1)
                        : cluster.node(victim).outcome("run-1").end.has_value();
    };
    EXPECT_TRUE(cluster.run_until(settled, 2 * kChangeMs));
    if (!was_needed) {
      EXPECT_EQ(cluster.node(victim).outcome("run-1").end, schema::RunState::kInterrupted);
      EXPECT_TRUE(cluster.train_alone(cluster.all_but({victim}), 1));
    }
    cluster.stop_and_expect_replayed(job);
  });
}

// Frames of a lost connection are lost. A view change follows, with the same members if the connection comes back
// within the disconnect grace, or without one of the two.
TEST(TrainingFaults, ALostConnectionCostsAMemberAtMost) {
  std::size_t nobody = 0, one = 0;
  in_a_run(100, {2, 8}, [&](TrainingCluster& cluster, const schema::JobSpec& job) {
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().break_connection(a, b);
    const auto goes_on = [&] {
      if (cluster.node(a).membership().view().number() + cluster.node(b).membership().view().number() < 3) return false;
      for (const Seat without : {a, b})
        if (cluster.train_alone(cluster.all_but({without}), 1)) return true;
      return cluster.train_alone(cluster.all_but({}), 1);
    };
    EXPECT_TRUE(cluster.run_until(goes_on, 2 * kChangeMs));
    (cluster.train_alone(cluster.all_but({}), 1) ? nobody : one) += 1;
    cluster.stop_and_expect_replayed(job);
  });
  std::printf("%zu times nobody was left out, %zu times one\n", nobody, one);
}

TEST(TrainingFaults, SurvivorsContinueAfterAShutdown) {
  in_a_run(100, {1, 8}, [](TrainingCluster& cluster, const schema::JobSpec& job) {
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat victim = cluster.any();
    cluster.node(victim).shut_down();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.node(victim).outcome("run-1").end.has_value(); }, 3'000));
    const Outcome& outcome = cluster.node(victim).outcome("run-1");
    EXPECT_EQ(outcome.end, schema::RunState::kInterrupted);
    EXPECT_NE(outcome.reason.find(cluster.name(victim) + " was shut down"), std::string::npos) << outcome.reason;
    if (cluster.size() == 1) return;
    // It votes for the view without it.
    const std::vector<Seat> rest = cluster.all_but({victim});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.train_alone(rest, 1); }, 2 * kChangeMs));
    cluster.stop_and_expect_replayed(job);
  });
}

// A member leaves while all are quiesced: no member goes back, and no step in flight is thrown away.
TEST(TrainingFaults, ALeaveCostsNoStep) {
  in_a_run(100, {1, 8}, [](TrainingCluster& cluster, const schema::JobSpec& job) {
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat victim = cluster.any();
    const Status told = cluster.node(victim).leave();
    EXPECT_EQ(told.ok(), cluster.size() > 1);
    if (!told.ok()) return;
    EXPECT_TRUE(cluster.run_until([&] { return cluster.node(victim).outcome("run-1").end.has_value(); }, 3'000));
    const Outcome& outcome = cluster.node(victim).outcome("run-1");
    EXPECT_EQ(outcome.end, schema::RunState::kInterrupted);
    EXPECT_EQ(outcome.reason, cluster.name(victim) + " left on request; the run continues without it");
    const std::vector<Seat> rest = cluster.all_but({victim});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.train_alone(rest, 1); }, kChangeMs));
    for (const Seat seat : cluster.seats()) {
      EXPECT_EQ(cluster.trainer(seat).undone(), 0u);
      EXPECT_EQ(cluster.trainer(seat).cut_short(), 0u);
    }
    EXPECT_EQ(cluster.node(rest.front()).membership().view().number(), 2u);
    cluster.stop_and_expect_replayed(job);
  });
}

// A node that has finished may leave at once; no other node is disturbed.
TEST(TrainingFaults, AFinishedMemberMayShutDown) {
  for_each_seed(200, {2, 8}, [](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed, 50, 30'000});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 8, exchange_of(seed)));
    std::optional<Seat> first;
    EXPECT_TRUE(cluster.run_until(
        [&] {
          for (const Seat seat : cluster.seats())
            if (cluster.node(seat).outcome("run-1").end) first = seat;
          return first.has_value();
        },
        10'000));
    cluster.node(first.value()).shut_down();
    EXPECT_TRUE(cluster.ends_within(1'000));
    for (const Seat seat : cluster.seats())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kCompleted)
          << cluster.node(seat).outcome("run-1").reason;
  });
}

// A run of 20 steps with this fault of one node in that step, to its end.
struct OneFault : TrainingCluster {
  using Kind = std::optional<std::uint64_t> Faults::*;
  const Seat faulty;
  OneFault(const NetworkOptions& options, Kind kind, std::uint64_t step)
      : TrainingCluster(options, Seat(options.seed % options.nodes), faults_of(kind, step)),
        faulty(options.seed % options.nodes) {
    train(tiny_job(seed(), 20, exchange_of(seed())), 5'000);
    EXPECT_LE(network().most_waiting_frames(), most_frames_of_two_steps());
  }
  static Faults faults_of(Kind kind, std::uint64_t step) {
    Faults faults;
    faults.*kind = step;
    return faults;
  }
  // Expects that no node has gone beyond `steps`.
  void expect_committed_at_most(std::uint64_t steps) {
    for (const Seat seat : seats()) EXPECT_LE(trainer(seat).committed_steps(), steps);
  }
};

TEST(TrainingFaults, ACorruptPayloadNamesItsSender) {
  for_each_seed(100, {2, 8}, [](std::uint64_t seed, std::size_t nodes) {
    OneFault run({nodes, seed}, &Faults::bad_payload, seed % 7);
    run.expect_failed({run.name(run.faulty), "breaks its format in step " + std::to_string(seed % 7)});
  });
}

TEST(TrainingFaults, AFlippedBitIsNamedWithinTheDigestPeriod) {
  for_each_seed(100, {3, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = 1 + seed % 10, noticed = step % 4 == 0 ? step : (step / 4 + 1) * 4;
    OneFault run({nodes, seed}, &Faults::flip_bit, step);
    run.expect_failed({run.name(run.faulty), "fc1.weight", "before step " + std::to_string(noticed)});
    run.expect_committed_at_most(noticed);
  });
}

TEST(TrainingFaults, ANonFiniteGradientNamesNodeSegmentAndStep) {
  for_each_seed(100, {1, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = seed % 9;
    const bool nan = seed % 2 == 0;
    OneFault run({nodes, seed}, nan ? &Faults::not_a_number : &Faults::infinite, step);
    run.expect_failed({"the gradient of " + std::string(nan ? "fc1.weight" : "conv1.weight") + " on " +
                       run.name(run.faulty) + " is not finite in step " + std::to_string(step)});
    // No member has committed the step with it; the news may reach a member that is still in the step before.
    run.expect_committed_at_most(step);
    run.expect_consistent();
  });
}

TEST(TrainingFaults, ANonFiniteStatisticNamesNodeNormalizationAndStep) {
  for_each_seed(50, {1, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = seed % 9;
    OneFault run({nodes, seed}, &Faults::odd_statistic, step);
    run.expect_failed(
        {"bn2.running_var on " + run.name(run.faulty) + " is not finite in step " + std::to_string(step)});
    run.expect_committed_at_most(step);
    run.expect_consistent();
  });
}

TEST(TrainingFaults, ADifferentNumberOfStatisticsIsNamed) {
  for_each_seed(50, {2, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = seed % 9;
    OneFault run({nodes, seed}, &Faults::few_statistics, step);
    run.expect_failed(
        {run.name(run.faulty) + " measured 1215 statistics in step " + std::to_string(step), "the model has 1216"});
    run.expect_committed_at_most(step);
    run.expect_consistent();
  });
}

TEST(TrainingFaults, RunningStatisticsThatDifferAreNamedWithinTheDigestPeriod) {
  for_each_seed(50, {3, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = seed % 10, noticed = (step / 4 + 1) * 4;
    OneFault run({nodes, seed}, &Faults::other_statistic, step);
    run.expect_failed({run.name(run.faulty), "bn1.running_mean", "before step " + std::to_string(noticed)});
    run.expect_committed_at_most(noticed);
  });
}

TEST(TrainingFaults, ADifferentLearningRateIsNamedWithBothValues) {
  for_each_seed(100, {2, 16}, [](std::uint64_t seed, std::size_t nodes) {
    const std::uint64_t step = seed % 9;
    OneFault run({nodes, seed}, &Faults::other_rate, step);
    run.expect_failed({"learning rates differ in step " + std::to_string(step), run.name(run.faulty), "0.01", "0.02"});
    run.expect_committed_at_most(step);
    run.expect_consistent();
  });
}

}  // namespace
}  // namespace tg::simulation
