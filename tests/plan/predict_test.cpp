// What any sound prediction has to obey, and the numbers that can be worked out by hand.
#include "daemon/forecast/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "daemon/forecast/flops.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_plan.h"
#include "daemon/step/worker.h"
#include "schema/limits.h"
#include "tests/plan/samples.h"

namespace tg::daemon {
namespace {

using schema::ExchangeKind;
using schema::ForecastReply;
using schema::ForecastRow;
using schema::Outcome;

constexpr ExchangeKind kBoth[] = {ExchangeKind::kDirect, ExchangeKind::kSharded};
const Surroundings kGigabit{941, 1, 0.92};

TEST(Predict, OneNodeOnlyComputes) {
  const Task task = train_task("lenet", 64);
  const ForecastRow row = predict_row(task, sample_machine(), kGigabit, 1);
  EXPECT_DOUBLE_EQ(row.direct.step, 64e-3);
  EXPECT_DOUBLE_EQ(row.direct.compute, 64e-3);
  EXPECT_EQ(row.direct.sent_bytes, 0);
  EXPECT_DOUBLE_EQ(row.direct.step, row.sharded.step);
  EXPECT_DOUBLE_EQ(row.direct.step, row.ring.step);
  EXPECT_DOUBLE_EQ(row.direct.speed_up, 1);
  EXPECT_EQ(predict_row(replay_task("alexnet"), sample_machine(), kGigabit, 1).direct.step, 0);
}

TEST(Predict, AFasterLinkIsNeverSlower) {
  for (const char* model : {"lenet-caffe", "googlenet", "alexnet"}) {
    const Task task = replay_task(model);
    for (const std::size_t nodes : {2u, 3u, 8u, 127u, 512u}) {
      for (const ExchangeKind exchange : kBoth) {
        double before = 1e9;
        for (const double mbps : {10.0, 100.0, 941.0, 9410.0, 1e5}) {
          const double step = predict(task, sample_machine(), {mbps, 1, 0.92}, nodes, exchange).step;
          EXPECT_LE(step, before) << model << ", " << nodes << " nodes, " << mbps << " Mbit/s";
          EXPECT_GT(step, 0);
          before = step;
        }
      }
    }
  }
}

TEST(Predict, MoreCoresAreNeverSlower) {
  const Task task = train_task("cifarnet", 128);
  for (const ExchangeKind exchange : kBoth) {
    double before = 1e9;
    for (const double cores : {0.125, 0.25, 0.5, 1.0, 2.0, 8.0}) {
      const double step = predict(task, sample_machine(8), {941, cores, 0.92}, 8, exchange).step;
      EXPECT_LE(step, before) << cores;
      before = step;
    }
  }
}

TEST(Predict, TheRingIsItsFormula) {
  const Task task = replay_task("alexnet");
  Machine machine = sample_machine();
  machine.cpu_factor = 4;  // of our frames, not of the ring
  for (const std::size_t nodes : {2u, 4u, 8u, 100u}) {
    const double n = static_cast<double>(nodes);
    const double theory = 2 * (n - 1) / n * 32 * 61'100'840 / 941e6;
    EXPECT_NEAR(predict_ring(task, machine, kGigabit, nodes).step, theory, 1e-9) << nodes;
  }
  // What Gloo was measured to take at N = 4 is within 1 % of it.
  EXPECT_NEAR(predict_ring(task, machine, kGigabit, 4).step, 3.120, 0.03);
}

TEST(Predict, AWireBoundStepIsItsBitsOverTheRate) {
  Machine machine = sample_machine();
  machine.cpu_factor = 1e-6;
  machine.trip_seconds = 0;
  schema::JobSpec job = replay_task("alexnet").job;
  job.coding = "entropy";
  const Task task = make_task(job).value();
  const Outcome direct = predict(task, machine, {941, 1, 0.68}, 2, ExchangeKind::kDirect);
  EXPECT_NEAR(direct.wire, 61'100'840 * 1.22 * 1.008 / 941e6, 0.01 * direct.wire);  // H(codes) = 1.22 bits at 68 %
  EXPECT_NEAR(direct.step, direct.wire, 0.001 * direct.step);
}

TEST(Predict, AProcessorBoundStepScalesWithItsShareOfACore) {
  const Task task = replay_task("alexnet");
  Machine machine = sample_machine();
  machine.trip_seconds = 0;
  const double whole = predict(task, machine, {1e6, 1, 0.92}, 4, ExchangeKind::kSharded).step;
  const double quarter = predict(task, machine, {1e6, 0.25, 0.92}, 4, ExchangeKind::kSharded).step;
  EXPECT_NEAR(quarter / whole, 4 * kSharedCore, 0.01);
}

TEST(Predict, ComputingHidesTheExchange) {
  const Task task = train_task("lenet", 64);
  Machine machine = sample_machine(4);
  const Outcome outcome = predict(task, machine, {1e6, 4, 0.92}, 2, ExchangeKind::kDirect);
  EXPECT_GE(outcome.step, outcome.compute);
  EXPECT_LT(outcome.step, outcome.compute + outcome.encode + outcome.wire + outcome.decode + outcome.apply +
                              outcome.network + outcome.trips);
}

TEST(Predict, BatchesAreShared) {
  const ForecastRow row = predict_row(train_task("lenet", 64), sample_machine(), kGigabit, 8);
  EXPECT_EQ(row.local_batch, 8u);
  EXPECT_EQ(row.global_batch, 64u);
  EXPECT_FALSE(row.beyond_batch);
  EXPECT_TRUE(predict_row(train_task("lenet", 64), sample_machine(), kGigabit, 128).beyond_batch);
  schema::JobSpec job;
  job.batch_per_node = 16;
  const ForecastRow grown = predict_row(make_task(job).value(), sample_machine(), kGigabit, 8);
  EXPECT_EQ(grown.global_batch, 128u);
  EXPECT_EQ(grown.local_batch, 16u);
}

TEST(Predict, TheTableEndsBeyondWhatARunAllowsAndSaysSo) {
  ForecastReply reply;
  predict_all(replay_task("alexnet"), sample_machine(), kGigabit, 4, reply);
  ASSERT_EQ(reply.table.size(), 10u);
  EXPECT_EQ(reply.table.front().nodes, 1u);
  EXPECT_EQ(reply.table.back().nodes, schema::kMostPlannedNodes);
  for (const ForecastRow& row : reply.table) EXPECT_EQ(row.beyond_members, row.nodes > schema::kMostMembers);
  EXPECT_EQ(reply.asked.nodes, 4u);
  EXPECT_FALSE(reply.assumptions.empty());
  EXPECT_LE(reply.assumptions.size(), schema::kMostAssumptions);
  EXPECT_LE(reply.table.size(), schema::kMostForecastRows);
}

TEST(Predict, TheRingOvertakesDirectWhereTheTableSaysSo) {
  const Task task = replay_task("alexnet");
  ForecastReply reply;
  predict_all(task, sample_machine(), kGigabit, 4, reply);
  ASSERT_GT(reply.direct_loses, 2u);
  const auto direct_wins = [&](std::size_t nodes) {
    return predict(task, sample_machine(), kGigabit, nodes, ExchangeKind::kDirect).step <=
           predict_ring(task, sample_machine(), kGigabit, nodes).step;
  };
  EXPECT_TRUE(direct_wins(reply.direct_loses - 1));
  EXPECT_FALSE(direct_wins(reply.direct_loses));
  EXPECT_EQ(reply.sharded_loses, 0u);
}

// As a member of a run votes, see run_estimate.cpp.
schema::Vote vote_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  schema::Vote vote;
  vote.link_mbps = where.payload_mbps;
  for (const schema::Commit& choice : kChoices) {
    const Plan plan = make_plan(task.model.segments, plan_options(task.job, nodes, choice));
    vote.codec_seconds.push_back(codec_seconds(plan, machine.codec[0].costs, where.zeros));
    vote.sent_bits.push_back(predict_traffic(plan, where.zeros).sent_bits);
  }
  return vote;
}

TEST(Predict, AutoIsWhatAStartChooses) {
  Machine machine = sample_machine();
  machine.codec[0].costs.encode_codes[1] = machine.codec[0].costs.decode_codes[1] = 3e-9;  // entropy
  machine.cpu_factor = 4;  // a start knows of no calibration
  std::set<std::pair<ExchangeKind, schema::Coding>> seen;
  for (const char* model : {"lenet-caffe", "googlenet", "alexnet"}) {
    for (const std::size_t nodes : {2u, 3u, 8u, 30u}) {
      for (const double mbps : {2.0, 100.0, 941.0, 9410.0, 1e5}) {
        for (const double told : {0.0, 50.0}) {
          schema::JobSpec job = replay_task(model).job;
          job.link_mbps = told;
          const Task task = make_task(job).value();
          const Surroundings where{mbps, 0.5, 0.68};
          const std::vector<schema::Vote> votes(nodes, vote_of(task, machine, where, nodes));
          const schema::Commit start = choose_exchange(asked_of(job), votes);
          EXPECT_EQ(choose_as_start(task, machine, where, nodes), start) << model << ' ' << nodes << ' ' << mbps;
          seen.emplace(start.exchange, start.coding);
          if (job.model != "googlenet" || nodes != 8 || told > 0) continue;  // the whole table takes 0.2 s
          ForecastReply reply;
          predict_all(task, machine, where, nodes, reply);
          EXPECT_EQ(reply.exchange, start.exchange == ExchangeKind::kDirect ? "direct" : "sharded");
          EXPECT_EQ(reply.coding, (reply.exchange == "direct" ? reply.asked.direct : reply.asked.sharded).coding);
        }
      }
    }
  }
  EXPECT_GT(seen.size(), 1u) << "nothing to choose";
}

TEST(Predict, WhatIsAskedBinds) {
  schema::JobSpec job = replay_task("alexnet").job;
  job.exchange = "direct";
  job.coding = "raw";
  ForecastReply bound;
  predict_all(make_task(job).value(), sample_machine(), kGigabit, 8, bound);
  EXPECT_EQ(bound.exchange, "direct");
  EXPECT_EQ(bound.coding, "raw");
  EXPECT_EQ(bound.asked.sharded.coding, "raw");
  job.exchange = "auto";
  job.scaler_sharing = "none";
  EXPECT_EQ(choose_as_start(make_task(job).value(), sample_machine(), kGigabit, 8).exchange, ExchangeKind::kDirect);
  job = replay_task("alexnet").job;
  job.exchange = "sharded";
  EXPECT_EQ(choose_as_start(make_task(job).value(), sample_machine(), kGigabit, 1).exchange, ExchangeKind::kDirect)
      << "alone";
}

TEST(Predict, ASlowLinkHasSmallChunks) {
  const Task task = replay_task("googlenet");
  Machine machine = sample_machine();
  machine.codec[0].costs.per_byte = 0;  // only frames cost something on the network
  const auto frames = [&](double mbps) {
    return model_of(task, machine, {mbps, 1, 0.68}, 4, {ExchangeKind::kSharded, schema::Coding::kRaw}).codec.network;
  };
  EXPECT_GT(frames(10), 2 * frames(10'000)) << "chunks are smaller, not only the credit";
  schema::JobSpec job = task.job;
  job.link_mbps = 10;  // what a start takes the link for, whatever it is
  const StepModel told =
      model_of(make_task(job).value(), machine, {10'000, 1, 0.68}, 4, {ExchangeKind::kSharded, schema::Coding::kRaw});
  EXPECT_DOUBLE_EQ(told.codec.network, frames(10));
}

TEST(Predict, WhatCannotBeTrainedSaysWhatToDo) {
  schema::JobSpec job;
  job.model = "vgg-a";
  const Result<Task> task = make_task(job);
  ASSERT_FALSE(task.ok());
  EXPECT_NE(task.error().message.find("compute=replay"), std::string::npos);
}

TEST(Predict, EveryModelAtEverySize) {
  for (const std::string& model : engine::model_names())
    for (const std::size_t nodes : {1u, 2u, 5u, 127u, 128u, 512u}) {
      const ForecastRow row = predict_row(replay_task(model), sample_machine(), kGigabit, nodes);
      EXPECT_EQ(row.direct.step > 0, nodes > 1) << model;
    }
}

TEST(Flops, LeNetByHand) {
  // conv1 28*28*500 + conv2 14*14*25000 + fc1 1225000 + fc2 5000 multiply-adds.
  const engine::Model lenet = engine::make_model("lenet").value();
  EXPECT_EQ(training_operations(lenet), 6.0 * (28 * 28 * 500 + 14 * 14 * 25'000 + 1'225'000 + 5'000));
  EXPECT_TRUE(multiply_adds(engine::make_model("alexnet").value()).empty());
}

TEST(StepModel, LaterBucketsAreReadyLater) {
  const Task task = train_task("cifarnet", 128);
  const StepModel step = model_of(task, sample_machine(), kGigabit, 2, {});
  ASSERT_GT(step.buckets.size(), 1u);
  for (std::size_t b = 1; b < step.buckets.size(); ++b) EXPECT_GT(step.buckets[b].ready, step.buckets[b - 1].ready);
  EXPECT_GT(step.buckets.front().ready, step.compute / 3 - 1e-12);
  EXPECT_NEAR(step.buckets.back().ready, step.compute, 1e-12);
}

TEST(StepModel, SeveralCoresCarryOutPiecesSideBySide) {
  const Task task = replay_task("alexnet");
  Machine machine = sample_machine(4);
  machine.workers = 4;
  machine.crew_speed_up = 2.5;  // of four threads: half of each further one is lost
  EXPECT_DOUBLE_EQ(crew_speed_up(machine, 0.5), 1);
  EXPECT_DOUBLE_EQ(crew_speed_up(machine, 1), 1);
  EXPECT_DOUBLE_EQ(crew_speed_up(machine, 2), 1.5);
  EXPECT_DOUBLE_EQ(crew_speed_up(machine, 4), 2.5);
  EXPECT_DOUBLE_EQ(crew_speed_up(machine, 100), crew_speed_up(machine, static_cast<double>(kMostWorkers)));
  const Surroundings fast{1e6, 4, 0.68};  // nothing but the kernels counts
  const double four = model_of(task, machine, fast, 2, {}).step_seconds(1, 0);
  machine.crew_speed_up = 1;
  const double one = model_of(task, machine, fast, 2, {}).step_seconds(1, 0);
  EXPECT_NEAR(one / four, 2.5, 0.1);
}

TEST(StepModel, PartsAreThoseOfTheCostModel) {
  const Task task = replay_task("googlenet");
  const Machine machine = sample_machine();
  const schema::Commit choice{ExchangeKind::kSharded, schema::Coding::kEntropy};
  Plan plan = make_plan(task.model.segments, {.members = 4, .exchange = choice.exchange, .coding = choice.coding});
  const auto frames = [&] {
    const StepModel step = model_step(plan, task.model, machine, kGigabit, 0, 0);
    return (step.codec.total() - codec_seconds(plan, machine.codec[0].costs, kGigabit.zeros)) / kFrameSeconds;
  };
  // Sent and taken: codes to three quarters' owners and as many sums, scalers to three peers for each bucket, credit.
  const double payloads = 2 * 0.75 * static_cast<double>(plan.chunks.size());
  const double scalers = 3.0 * static_cast<double>(plan.buckets.size());
  plan.window_bytes = 1u << 30;
  EXPECT_NEAR(frames(), 2 * (payloads + scalers), 1e-6) << "all of a step is below a quarter of the window";
  plan.window_bytes = 4;
  EXPECT_NEAR(frames(), 2 * (payloads + scalers + 3 * (std::ceil(payloads / 3) - 1)), 1e-6) << "for each but the last";
}

}  // namespace
}  // namespace tg::daemon
