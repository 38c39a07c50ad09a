// What any sound prediction has to obey, and the numbers that can be worked out by hand.
#include "daemon/forecast/predict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/forecast/code_bits.h"
#include "daemon/step/worker.h"
#include "engine/graph/flops.h"
#include "schema/limits.h"
#include "tests/forecast/samples.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;
using schema::ForecastRow;
using schema::Outcome;

constexpr ExchangeKind kBoth[] = {ExchangeKind::kDirect, ExchangeKind::kSharded};
const Surroundings kGigabit{941, 1, 0.92};

TEST(Predict, OneNodeOnlyComputes) {
  const Task task = train_task(ModelKind::kLenet, 64);
  const ForecastRow row = predict_row(task, sample_machine(), kGigabit, 1, Coding::kRaw);
  EXPECT_DOUBLE_EQ(row.direct.step, 64e-3);
  EXPECT_DOUBLE_EQ(row.direct.compute, 64e-3);
  EXPECT_EQ(row.direct.sent_bytes, 0);
  EXPECT_DOUBLE_EQ(row.direct.step, row.sharded.step);
  EXPECT_DOUBLE_EQ(row.direct.step, row.ring.step);
  EXPECT_DOUBLE_EQ(row.direct.speed_up, 1);
  EXPECT_EQ(predict_row(replay_task(ModelKind::kAlexnet), sample_machine(), kGigabit, 1, Coding::kRaw).direct.step, 0);
}

TEST(Predict, AFasterLinkIsNeverSlower) {
  for (const ModelKind model : {ModelKind::kLenet, ModelKind::kGooglenetSlim, ModelKind::kAlexnet}) {
    const Task task = replay_task(model);
    for (const std::size_t nodes : {2u, 3u, 8u, 127u, 512u}) {
      for (const ExchangeKind exchange : kBoth) {
        double before = 1e9;
        for (const double mbps : {10.0, 100.0, 941.0, 9410.0, 1e5}) {
          const double step = predict(task, sample_machine(), {mbps, 1, 0.92}, nodes, exchange, Coding::kRaw).step;
          EXPECT_LE(step, before) << to_word(model) << ", " << nodes << " nodes, " << mbps << " Mbit/s";
          EXPECT_GT(step, 0);
          before = step;
        }
      }
    }
  }
}

TEST(Predict, MoreCoresAreNeverSlower) {
  const Task task = train_task(ModelKind::kCifarnet, 128);
  for (const ExchangeKind exchange : kBoth) {
    double before = 1e9;
    for (const double cores : {0.125, 0.25, 0.5, 1.0, 2.0, 8.0}) {
      const double step = predict(task, sample_machine(8), {941, cores, 0.92}, 8, exchange, Coding::kRaw).step;
      EXPECT_LE(step, before) << cores;
      before = step;
    }
  }
}

// In every exchange a member sends them to each of the others.
TEST(Predict, StatisticsOfBatchNormalizationsTravelToo) {
  const Task task = replay_task(ModelKind::kResnet20);
  Task without = task;
  without.model.statistics = {};
  without.model.operators = {};  // which refer to them; what is sent does not depend on when
  for (const ExchangeKind exchange : kBoth)
    for (const std::size_t nodes : {2u, 4u}) {
      const auto sent = [&](const Task& one) {
        return predict(one, sample_machine(), kGigabit, nodes, exchange, Coding::kRaw).sent_bytes;
      };
      EXPECT_NEAR(sent(task) - sent(without), 4.0 * 1568 * static_cast<double>(nodes - 1), 1e-6) << nodes;
    }
}

TEST(Predict, TheRingIsItsFormula) {
  const Task task = replay_task(ModelKind::kAlexnet);
  const Machine machine = sample_machine();
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
  machine.trip_seconds = 0;
  const Outcome direct =
      predict(replay_task(ModelKind::kAlexnet), machine, {10, 1, 0.68}, 2, ExchangeKind::kDirect, Coding::kEntropy);
  EXPECT_NEAR(direct.wire, 61'100'840 * 1.22 * 1.008 / 10e6, 0.02 * direct.wire);  // H(codes) = 1.22 bits at 68 %
  EXPECT_NEAR(direct.step, direct.wire, 0.01 * direct.step);
}

TEST(Predict, AProcessorBoundStepScalesWithItsShareOfACore) {
  const Task task = replay_task(ModelKind::kAlexnet);
  Machine machine = sample_machine();
  machine.trip_seconds = 0;
  const double whole = predict(task, machine, {1e6, 1, 0.92}, 4, ExchangeKind::kSharded, Coding::kRaw).step;
  const double quarter = predict(task, machine, {1e6, 0.25, 0.92}, 4, ExchangeKind::kSharded, Coding::kRaw).step;
  EXPECT_NEAR(quarter / whole, 4 * kSharedCore, 0.01);
}

TEST(Predict, ComputingHidesTheExchange) {
  const Task task = train_task(ModelKind::kLenet, 64);
  Machine machine = sample_machine(4);
  const Outcome outcome = predict(task, machine, {1e6, 4, 0.92}, 2, ExchangeKind::kDirect, Coding::kRaw);
  EXPECT_GE(outcome.step, outcome.compute);
  EXPECT_LT(outcome.step, outcome.compute + outcome.wire + outcome.processor + 2 * machine.trip_seconds);
}

TEST(Predict, BatchesAreShared) {
  const ForecastRow row = predict_row(train_task(ModelKind::kLenet, 64), sample_machine(), kGigabit, 8, Coding::kRaw);
  EXPECT_EQ(row.local_batch, 8u);
  EXPECT_EQ(row.global_batch, 64u);
  const ForecastRow many =
      predict_row(train_task(ModelKind::kLenet, 64), sample_machine(), kGigabit, 128, Coding::kRaw);
  EXPECT_EQ(many.global_batch, 128u) << "a sample for each node";
  schema::JobSpec job;
  job.batch_per_node = 16;
  const ForecastRow grown = predict_row(make_task(job).value(), sample_machine(), kGigabit, 8, Coding::kRaw);
  EXPECT_EQ(grown.global_batch, 128u);
  EXPECT_EQ(grown.local_batch, 16u);
}

TEST(Predict, ASlowLinkHasSmallChunks) {
  const Task task = replay_task(ModelKind::kGooglenetSlim);
  const Machine machine = sample_machine();
  // What is no byte's cost is a frame's.
  const auto frames = [&](const Task& one, double mbps) {
    const StepModel step = model_of(one, machine, {mbps, 1, 0.68}, 4, ExchangeKind::kSharded, Coding::kRaw);
    return step.network / (2 * kFrameSeconds);
  };
  EXPECT_GT(frames(task, 10), 1.5 * frames(task, 10'000)) << "chunks are smaller, not only the credit";
  schema::JobSpec job = task.job;
  job.link_mbps = 10;  // what a start takes the link for, whatever it is
  EXPECT_DOUBLE_EQ(frames(make_task(job).value(), 10'000), frames(task, 10));
}

TEST(Predict, WhatCannotBeTrainedSaysWhatToDo) {
  schema::JobSpec job;
  job.model = ModelKind::kLenet;
  const Result<Task> task = make_task(job);
  ASSERT_FALSE(task.ok());
  EXPECT_NE(task.error().message.find("compute=replay"), std::string::npos);
}

TEST(Predict, EveryModelAtEverySize) {
  for (const ModelKind model : values_of<ModelKind>())
    for (const std::size_t nodes : {1u, 2u, 5u, 127u, 128u, 512u}) {
      const ForecastRow row = predict_row(replay_task(model), sample_machine(), kGigabit, nodes, Coding::kRaw);
      EXPECT_EQ(row.direct.step > 0, nodes > 1) << to_word(model);
    }
}

TEST(Flops, LeNetByHand) {
  // conv1 28*28*500 + conv2 14*14*25000 + fc1 1225000 + fc2 5000 multiply-adds.
  const engine::Model lenet = engine::make_model(ModelKind::kLenet);
  EXPECT_EQ(training_operations(lenet), 6.0 * (28 * 28 * 500 + 14 * 14 * 25'000 + 1'225'000 + 5'000));
}

TEST(StepModel, LaterBucketsAreReadyLater) {
  const Task task = train_task(ModelKind::kCifarnet, 128);
  const StepModel step = model_of(task, sample_machine(), kGigabit, 2, ExchangeKind::kDirect, Coding::kRaw);
  ASSERT_GT(step.buckets.size(), 1u);
  for (std::size_t b = 1; b < step.buckets.size(); ++b) EXPECT_GT(step.buckets[b].ready, step.buckets[b - 1].ready);
  EXPECT_GT(step.buckets.front().ready, step.compute / 3 - 1e-12);
  EXPECT_NEAR(step.buckets.back().ready, step.compute, 1e-12);
}

TEST(StepModel, SeveralCoresCarryOutPiecesSideBySide) {
  const Task task = replay_task(ModelKind::kAlexnet);
  const auto step = [&](double cores) {  // on a link where nothing but the kernels counts
    Machine machine = sample_machine(4);
    machine.trip_seconds = 0;
    return predict(task, machine, {1e6, cores, 0.68}, 2, ExchangeKind::kDirect, Coding::kRaw).step;
  };
  EXPECT_GE(step(1) / step(4), crew_speed_up(4)) << "TCP is not the kernels'";
  EXPECT_LE(step(1) / step(4), 4);
  const StepModel most = model_of(task, sample_machine(100), {1e6, 100, 0.68}, 2, ExchangeKind::kDirect, Coding::kRaw);
  EXPECT_DOUBLE_EQ(most.crew, crew_speed_up(static_cast<double>(kMaxWorkers)));
}

TEST(StepModel, PartsAreThoseOfTheCostModel) {
  const Task task = replay_task(ModelKind::kGooglenetSlim);
  const Machine machine = sample_machine();
  Layout layout =
      make_layout(task.model.segments, {.members = 4, .exchange = ExchangeKind::kSharded, .coding = Coding::kEntropy});
  const auto frames = [&] {
    const StepModel step = model_step(layout, task.model, machine, kGigabit, {});
    return (step.network - sent_bits(layout, kGigabit.zeros) / 8 * 2 * kByteSeconds) / kFrameSeconds;
  };
  // Sent and taken: codes to three quarters' owners and as many sums, scalers to three peers for each bucket, credit.
  const double payloads = 2 * 0.75 * static_cast<double>(layout.chunks.size());
  const double scalers = 3.0 * static_cast<double>(layout.buckets.size());
  layout.window_bytes = 1u << 30;
  EXPECT_NEAR(frames(), 2 * (payloads + scalers), 1e-6) << "all of a step is below a quarter of the window";
  layout.window_bytes = 4;
  EXPECT_NEAR(frames(), 2 * (payloads + scalers + 3 * (std::ceil(payloads / 3) - 1)), 1e-6) << "for each but the last";
}

TEST(StepModel, BitsAreThoseOfTheirFormats) {
  const engine::Model model = replay_task(ModelKind::kAlexnet).model;
  // Bits per element.
  const auto bits = [&](std::size_t members, ExchangeKind exchange, GradientFormat format) {
    const Layout layout = make_layout(
        model.segments, {.members = members, .exchange = exchange, .gradients = format, .last_layer = format});
    double elements = 0;
    for (const ChunkLayout& chunk : layout.chunks) elements += static_cast<double>(chunk.size());
    return sent_bits(layout, 0.92) / elements;
  };
  EXPECT_NEAR(bits(3, ExchangeKind::kDirect, GradientFormat::kTernary), 2 * 1.08, 1e-9) << "a mask, 8 % have signs";
  EXPECT_NEAR(bits(4, ExchangeKind::kSharded, GradientFormat::kFloat16), 0.75 * 32, 1e-9) << "there and back";
  EXPECT_NEAR(bits(2, ExchangeKind::kDirect, GradientFormat::kFloat32), 32, 1e-9);
}

}  // namespace
}  // namespace tg::daemon
