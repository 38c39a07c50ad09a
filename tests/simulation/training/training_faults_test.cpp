// What goes wrong in the middle of a training run: everybody ends, in time, naming who and where.
#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kVerdictMs = 11'000;  // peer-timeout + 1 s

TEST(TrainingFaults, ADeathAtAnyPhaseFailsAllSurvivorsNamingTheVictim) {
  for (const std::uint64_t seed : seeds(400)) {
    const std::size_t nodes = draw_size(seed, 2, 16);
    TG_SEED(seed, nodes);
    TrainingCluster cluster({nodes, seed});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 1'000'000, exchange_of(seed)));
    const std::uint64_t frames = cluster.network().delivered() + cluster.random().between(0, 40 * nodes);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.network().delivered() >= frames; }, 10'000));
    const Seat victim = cluster.any();
    const bool silent = cluster.random().one_in(2);
    cluster.kill(victim, silent);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, silent ? kVerdictMs : 100));
    cluster.expect_failed({cluster.name(victim)});
    cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, APartitionFailsAllAndPilesUpNothing) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 16);
    TG_SEED(seed, nodes);
    TrainingCluster cluster({nodes, seed});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 1'000'000, exchange_of(seed)));
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().block(a, b, true);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, kVerdictMs));
    cluster.expect_failed({cluster.name(a)});
    cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, APausedMemberIsNamedAndAgreesWhenItWakes) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 16);
    TG_SEED(seed, nodes);
    TrainingCluster cluster({nodes, seed});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 1'000'000, exchange_of(seed)));
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat victim = cluster.any();
    cluster.network().pause(victim, true);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, kVerdictMs));
    cluster.network().pause(victim, false);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, kVerdictMs));
    cluster.expect_failed({cluster.name(victim)});
    cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, ALostConnectionLosesFramesAndEndsTheRun) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 16);
    TG_SEED(seed, nodes);
    TrainingCluster cluster({nodes, seed});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 1'000'000, exchange_of(seed)));
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat a = cluster.any(), b = cluster.any_but(a);
    cluster.network().break_connection(a, b);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, 1'000));
    cluster.expect_failed({cluster.name(a), cluster.name(b)});
    cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, AShutDownInTheMiddleIsNamed) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 1, 16);
    TG_SEED(seed, nodes);
    TrainingCluster cluster({nodes, seed});
    cluster.start_and_wait(cluster.any(), "run-1", tiny_job(seed, 1'000'000, exchange_of(seed)));
    cluster.network().run_for(cluster.random().between(0, 100));
    const Seat victim = cluster.any();
    cluster.node(victim).shut_down();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, 100));
    cluster.expect_failed({cluster.name(victim) + " was shut down"});
    cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

// A node that has finished may leave at once; nobody else is disturbed.
TEST(TrainingFaults, WhoFinishedFirstMayShutDown) {
  for (const std::uint64_t seed : seeds(200)) {
    const std::size_t nodes = draw_size(seed, 2, 8);
    TG_SEED(seed, nodes);
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
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ended("run-1"); }, 1'000));
    for (const Seat seat : cluster.seats())
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kCompleted)
          << cluster.node(seat).outcome("run-1").reason;
    if (testing::Test::HasFailure()) return;
  }
}

class OneFault {
 public:
  // A run of 20 steps with this fault on one node.
  OneFault(std::uint64_t seed, std::size_t nodes, Seat faulty, const Faults& faults)
      : cluster({nodes, seed}, faulty, faults) {
    cluster.train(tiny_job(seed, 20, exchange_of(seed)), 5'000);
    cluster.expect_consistent_lengths();
  }
  struct Checked : TrainingCluster {
    using TrainingCluster::TrainingCluster;
    void expect_consistent_lengths() { EXPECT_LE(network().most_waiting_frames(), most_frames_of_two_steps()); }
  } cluster;
};

TEST(TrainingFaults, ACorruptPayloadNamesItsSender) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 2, 8);
    TG_SEED(seed, nodes);
    const Seat faulty(seed % nodes);
    Faults faults;
    faults.bad_payload = seed % 7;
    OneFault run(seed, nodes, faulty, faults);
    run.cluster.expect_failed({run.cluster.name(faulty), "breaks its format in step " + std::to_string(seed % 7)});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, AFlippedBitIsNamedWithinTheDigestPeriod) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 3, 16);
    TG_SEED(seed, nodes);
    const Seat faulty(seed % nodes);
    const std::uint64_t step = 1 + seed % 10, noticed = step % 4 == 0 ? step : (step / 4 + 1) * 4;
    Faults faults;
    faults.flip_bit = step;
    OneFault run(seed, nodes, faulty, faults);
    run.cluster.expect_failed({run.cluster.name(faulty), "fc1.weight", "before step " + std::to_string(noticed)});
    for (const Seat seat : run.cluster.seats()) EXPECT_LE(run.cluster.trainer(seat).committed_steps(), noticed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, ANonFiniteGradientNamesNodeSegmentAndStep) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 1, 16);
    TG_SEED(seed, nodes);
    const Seat faulty(seed % nodes);
    const std::uint64_t step = seed % 9;
    const bool nan = seed % 2 == 0;
    Faults faults;
    (nan ? faults.not_a_number : faults.infinite) = step;
    OneFault run(seed, nodes, faulty, faults);
    run.cluster.expect_failed({"the gradient of " + std::string(nan ? "fc1.weight" : "conv1.weight") + " on " +
                               run.cluster.name(faulty) + " is not finite in step " + std::to_string(step)});
    // Nobody has taken the step with it; the news may reach a member that is still in the step before.
    for (const Seat seat : run.cluster.seats()) EXPECT_LE(run.cluster.trainer(seat).committed_steps(), step);
    run.cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TrainingFaults, ADifferentLearningRateIsNamedWithBothValues) {
  for (const std::uint64_t seed : seeds(100)) {
    const std::size_t nodes = draw_size(seed, 2, 16);
    TG_SEED(seed, nodes);
    const Seat faulty(seed % nodes);
    const std::uint64_t step = seed % 9;
    Faults faults;
    faults.other_rate = step;
    OneFault run(seed, nodes, faulty, faults);
    run.cluster.expect_failed(
        {"learning rates differ in step " + std::to_string(step), run.cluster.name(faulty), "0.01", "0.02"});
    for (const Seat seat : run.cluster.seats()) EXPECT_LE(run.cluster.trainer(seat).committed_steps(), step);
    run.cluster.expect_consistent();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tg::simulation
