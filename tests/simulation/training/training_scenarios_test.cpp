// Whole runs on a virtual network: the replicas of all members against the plain reference, bit for bit.
#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

using schema::ExchangeKind, schema::GradientFormat;

// What a job may be besides tiny.
struct ScenarioMode {
  const char* name;
  void (*set)(schema::JobSpec& job);
};

constexpr ScenarioMode kScenarioModes[] = {
    {"ternary", [](schema::JobSpec&) {}},
    {"float32", [](schema::JobSpec& job) { job.gradients = GradientFormat::kFloat32; }},
    {"mixed",
     [](schema::JobSpec& job) {
       job.min_ternary_size = 100;
       job.last_layer = GradientFormat::kFloat32;
       job.float_steps = 1;
     }},
    {"adam",
     [](schema::JobSpec& job) {
       job.optimizer = OptimizerKind::kAdam;
       job.clip_sigma = 0;
     }},
    {"float16",
     [](schema::JobSpec& job) {
       job.gradients = GradientFormat::kFloat16;
       job.float_steps = 2;
     }},
    {"own_scalers",
     [](schema::JobSpec& job) {
       job.scaler_sharing = schema::ScalerSharing::kNone;
       job.exchange = std::nullopt;
     }},
    {"raw",
     [](schema::JobSpec& job) {
       job.coding = schema::Coding::kRaw;
       job.ema = 0;
     }},
    {"last_float16",
     [](schema::JobSpec& job) {
       job.last_layer = GradientFormat::kFloat16;
       job.chunk_parameters = 1 << 16;
     }},
};

struct Case {
  std::size_t nodes;
  ExchangeKind exchange;
  ScenarioMode mode;
  std::string name() const { return "n" + std::to_string(nodes) + "_" + to_word(exchange) + "_" + mode.name; }
  schema::JobSpec job(std::uint64_t seed) const {
    schema::JobSpec made = tiny_job(seed, nodes > 16 ? 3 : nodes > 7 ? 5 : 12, exchange);
    mode.set(made);
    return made;
  }
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name(); }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::size_t nodes : {1, 2, 3, 4, 7, 16, 64})
    for (const ExchangeKind exchange : values_of<ExchangeKind>())
      for (const ScenarioMode& mode : kScenarioModes) {
        const Case one{nodes, exchange, mode};
        // Scalers of each member's own exchange directly, whatever is asked: once is enough.
        if (one.job(1).scaler_sharing == schema::ScalerSharing::kMax || exchange == ExchangeKind::kDirect)
          all.push_back(one);
      }
  return all;
}

class TrainingScenarios : public testing::TestWithParam<Case> {};

TEST_P(TrainingScenarios, EveryReplicaEqualsThePlainReference) {
  const Case& one = GetParam();
  const std::size_t count = one.nodes > 16 ? 1 : one.nodes > 7 ? 2 : 6;
  for_each_seed(count, {one.nodes, one.nodes}, [&](std::uint64_t seed, std::size_t nodes) {
    const schema::JobSpec job = one.job(seed);
    TrainingCluster cluster({nodes, seed, 50, seed % 2 ? 2'000u : 40'000u});
    cluster.train(job);
    const ReferenceState reference = train_reference(job, nodes, job.steps);
    double loss = 0;
    for (const Seat seat : cluster.seats()) loss += draw_loss(job.seed, seat.index(), job.steps - 1);
    for (const Seat seat : cluster.seats()) {
      ASSERT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kCompleted)
          << cluster.node(seat).outcome("run-1").reason;
      ASSERT_EQ(difference(reference, cluster.trainer(seat).replica()), "") << cluster.name(seat);
      EXPECT_EQ(cluster.trainer(seat).last_loss(), loss);
      EXPECT_EQ(cluster.trainer(seat).committed_steps(), job.steps);
    }
    if (job.gradients == GradientFormat::kTernary) {
      EXPECT_GT(reference.nonzero_means, 100u);
    }
    cluster.expect_consistent();
  });
}

INSTANTIATE_TEST_SUITE_P(All, TrainingScenarios, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name(); });

TEST(TrainingOrder, FramesOfTheNextStepArriveWhileAMemberIsInThisOne) {
  std::uint64_t next_step_frames = 0;
  for_each_seed(20, {4, 4}, [&](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed, 50, 60'000});
    const schema::JobSpec job = tiny_job(seed, 10, exchange_of(seed));
    cluster.train(job);
    cluster.expect_reference(job, job.steps);
    for (const Seat seat : cluster.seats()) next_step_frames += cluster.trainer(seat).next_step_frames();
  });
  EXPECT_GT(next_step_frames, 20u);
}

TEST(TrainingOrder, HelpersChangeNothingButTime) {
  std::uint64_t helped = 0;
  for_each_seed(20, {3, 3}, [&](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed, 50, 5'000});
    const schema::JobSpec job = tiny_job(seed, 10, exchange_of(seed));
    cluster.train(job);
    cluster.expect_reference(job, job.steps);
    EXPECT_EQ(cluster.trainer(Seat(0)).helped_tasks(), 0u);
    helped += cluster.trainer(Seat(1)).helped_tasks() + cluster.trainer(Seat(2)).helped_tasks();
  });
  EXPECT_GT(helped, 500u);
}

TEST(TrainingOrder, ASlowMemberChangesNothingButTime) {
  for_each_seed(10, {5, 5}, [&](std::uint64_t seed, std::size_t nodes) {
    Faults slow;
    slow.extra_compute_us = 300'000;
    TrainingCluster cluster({nodes, seed}, Seat(seed % 5), slow);
    const schema::JobSpec job = tiny_job(seed, 6, exchange_of(seed));
    cluster.train(job);
    cluster.expect_reference(job, job.steps);
    cluster.expect_consistent();
  });
}

TEST(TrainingOrder, AStopIsTakenByAllAfterTheSameStep) {
  for_each_seed(200, {1, 16}, [](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed});
    const schema::JobSpec job = tiny_job(seed, 1'000'000, exchange_of(seed));
    cluster.start_and_wait(cluster.any(), "run-1", job);
    cluster.network().run_for(cluster.random().between(0, 150));
    for (int asked = 0; asked < 2; ++asked) EXPECT_TRUE(cluster.node(cluster.any()).stop("run-1").ok());
    EXPECT_TRUE(cluster.ends_within(2'000));
    const std::uint64_t steps = cluster.trainer(Seat(0)).committed_steps();
    for (const Seat seat : cluster.seats()) {
      EXPECT_EQ(cluster.node(seat).outcome("run-1").end, schema::RunState::kStopped);
      EXPECT_EQ(cluster.trainer(seat).committed_steps(), steps);
    }
    cluster.expect_reference(job, steps);
    cluster.expect_consistent();
  });
}

TEST(TrainingOrder, AShortPauseOrABlockedLinkOnlyDelays) {
  for_each_seed(100, {2, 8}, [](std::uint64_t seed, std::size_t nodes) {
    TrainingCluster cluster({nodes, seed});
    const schema::JobSpec job = tiny_job(seed, 20, exchange_of(seed));
    cluster.start_and_wait(cluster.any(), "run-1", job);
    cluster.network().run_for(cluster.random().between(0, 50));
    const Seat a = cluster.any(), b = cluster.any_but(a);
    const auto trouble = [&](bool on) {
      if (seed % 3 == 0)
        cluster.network().pause(a, on);
      else
        cluster.network().block(a, b, on);
    };
    trouble(true);
    cluster.network().run_for(cluster.random().between(1, 9'000));
    trouble(false);
    EXPECT_TRUE(cluster.ends_within(30'000));
    for (const Seat seat : cluster.seats()) EXPECT_EQ(cluster.node(seat).outcome("run-1").reason, "");
    cluster.expect_reference(job, job.steps);
    cluster.expect_consistent();
  });
}

}  // namespace
}  // namespace tg::simulation
