// What any sound prediction has to obey, and the numbers that can be worked out by hand.
#include "daemon/forecast/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/exchange/layout.h"
#include "daemon/forecast/code_bits.h"
#include "daemon/membership/choose_exchange.h"
#include "engine/graph/flops.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;
using schema::Outcome;

constexpr ExchangeKind kBoth[] = {ExchangeKind::kDirect, ExchangeKind::kSharded};
constexpr double kTrip = 75e-6;

// A job, its model and a node of one core on a gigabit; LeNet at 1 ms a sample.
struct Case {
  schema::JobSpec job;
  engine::Model model;
  StepQuestion question{model, job};

  explicit Case(ModelKind kind, std::size_t nodes = 2, schema::Compute compute = schema::Compute::kReplay)
      : model(engine::make_model(kind)) {
    job.model = kind;
    job.compute = compute;
    job.global_batch = 64;
    job.last_layer = schema::GradientFormat::kTernary;
    question.nodes = nodes;
    question.payload_mbps = 941;
    question.zeros = 0.92;
    if (compute == schema::Compute::kTrain) question.sample_seconds = 1e-3;
  }
  Case(const Case&) = delete;
  Outcome step(ExchangeKind exchange, Coding coding = Coding::kRaw) const {
    schema::Commit choice = choice_of(question);
    choice.exchange = exchange;
    choice.coding = coding;
    return predict_step(question, choice);
  }
};

TEST(Forecast, OneNodeOnlyComputes) {
  const Case one(ModelKind::kLenet, 1, schema::Compute::kTrain);
  const schema::ForecastRow row = predict_row(one.question);
  EXPECT_DOUBLE_EQ(row.direct.step, 64e-3);
  EXPECT_DOUBLE_EQ(row.direct.compute, 64e-3);
  EXPECT_DOUBLE_EQ(row.direct.speed_up, 1);
  EXPECT_EQ(row.direct.sent_bytes, 0);
  EXPECT_DOUBLE_EQ(row.direct.step, row.sharded.step);
}

TEST(Forecast, AFasterLinkIsNeverSlower) {
  for (const ModelKind model : {ModelKind::kLenet, ModelKind::kGooglenetSlim, ModelKind::kAlexnet})
    for (const std::size_t nodes : {2u, 3u, 8u, 127u})
      for (const ExchangeKind exchange : kBoth) {
        Case one(model, nodes);
        double before = 1e9;
        for (const double mbps : {10.0, 100.0, 941.0, 9410.0, 1e5}) {
          one.question.payload_mbps = mbps;
          const double step = one.step(exchange).step;
          EXPECT_LE(step, before) << to_word(model) << ", " << nodes << " nodes, " << mbps << " Mbit/s";
          EXPECT_GT(step, 0);
          before = step;
        }
      }
}

TEST(Forecast, ALinkBoundStepIsItsBitsOverTheRate) {
  Case one(ModelKind::kAlexnet);
  one.question.payload_mbps = 10;
  one.question.zeros = 0.68;
  const Outcome direct = one.step(ExchangeKind::kDirect, Coding::kEntropy);
  EXPECT_NEAR(direct.wire, 61'100'840 * 1.22 * 1.008 / 10e6, 0.02 * direct.wire);  // H(codes) = 1.22 bits at 68 %
  EXPECT_NEAR(direct.step, direct.wire, 0.01 * direct.step);
}

TEST(Forecast, AProcessorBoundStepScalesWithTheCores) {
  Case one(ModelKind::kAlexnet, 4);
  one.question.payload_mbps = 1e6;
  const double alone = one.step(ExchangeKind::kSharded).step - 3 * kTrip;
  one.question.threads = one.question.cores = 4;
  EXPECT_NEAR(alone / (one.step(ExchangeKind::kSharded).step - 3 * kTrip), 1 + 3 * 0.9, 0.6)
      << "further threads add less";
  one.question.threads = one.question.cores = 100;
  const double many = one.step(ExchangeKind::kSharded).step;
  one.question.threads = 8;
  EXPECT_EQ(many, one.step(ExchangeKind::kSharded).step) << "an exchange has eight threads at most";
}

TEST(Forecast, ComputingHidesTheExchange) {
  Case one(ModelKind::kLenet, 2, schema::Compute::kTrain);
  one.question.cores = one.question.threads = 4;
  const Outcome step = one.step(ExchangeKind::kDirect);
  EXPECT_GE(step.step, step.compute);
  EXPECT_LT(step.step, step.compute + step.wire + step.processor + 2 * kTrip);
  one.question.on_device = true;
  EXPECT_LE(one.step(ExchangeKind::kDirect).step, step.step) << "a device computes beside the cores";
}

// In every exchange a member sends them to each of the others.
TEST(Forecast, StatisticsOfBatchNormalizationsTravelToo) {
  for (const ExchangeKind exchange : kBoth)
    for (const std::size_t nodes : {2u, 4u}) {
      Case one(ModelKind::kResnet20, nodes);
      const double with = one.step(exchange).sent_bytes;
      one.model.statistics = {};
      one.model.operators = {};  // which refer to them; what is sent does not depend on when
      EXPECT_NEAR(with - one.step(exchange).sent_bytes, 4.0 * 1568 * static_cast<double>(nodes - 1), 1e-6) << nodes;
    }
}

TEST(Forecast, BatchesAreShared) {
  Case one(ModelKind::kLenet, 8, schema::Compute::kTrain);
  EXPECT_EQ(predict_row(one.question).local_batch, 8u);
  one.question.own_samples = 40;
  EXPECT_NEAR(predict_row(one.question).direct.compute, 40e-3, 1e-12) << "weights split the batch";
  one.question.own_samples = 0;
  one.question.nodes = 100;
  EXPECT_EQ(predict_row(one.question).global_batch, 100u) << "a sample for each node";
  one.job.batch_per_node = 16;
  one.question.nodes = 8;
  EXPECT_EQ(predict_row(one.question).global_batch, 128u);
  EXPECT_EQ(predict_row(one.question).local_batch, 16u);
}

// A start has what it chose by votes of the same link, a plan what such nodes would choose: both ask the same function.
TEST(Forecast, AStartChoosesWhatAPlanSays) {
  for (const std::size_t nodes : {2u, 3u, 8u})
    for (const double mbps : {10.0, 1000.0, 10'000.0}) {
      Case one(ModelKind::kAlexnet, nodes);
      one.question.payload_mbps = mbps;
      schema::Vote vote;
      vote.link_mbps = mbps;
      EXPECT_EQ(choice_of(one.question),
                choose_exchange(exchange_preference(one.job), std::vector<schema::Vote>(nodes, vote)).commit);
      const schema::ForecastReply plan = plan_reply(one.question).value();
      const Outcome start = predict_step(one.question, choice_of(one.question));
      EXPECT_EQ((plan.exchange == "direct" ? plan.asked.direct : plan.asked.sharded).step, start.step);
    }
}

TEST(Forecast, ALinkThatTheJobSaysIsALine) {
  Case one(ModelKind::kGooglenetSlim, 4);
  one.job.link_mbps = 1000;
  const schema::ForecastReply reply = plan_reply(one.question).value();
  EXPECT_EQ(reply.payload_mbps, 1000 * kPayloadShare);
  EXPECT_EQ(reply.line_mbps, 1000);
  one.job.link_mbps = 0;
  one.question.payload_mbps = 0;
  EXPECT_NE(plan_reply(one.question).error().message.find("--link"), std::string::npos);
}

TEST(Forecast, WhatTheJobAsksForBinds) {
  Case one(ModelKind::kAlexnet, 8);
  one.job.exchange = ExchangeKind::kDirect;
  one.job.coding = Coding::kRaw;
  one.question.payload_mbps = 10;
  EXPECT_EQ(plan_reply(one.question)->exchange, "direct");
  EXPECT_EQ(plan_reply(one.question)->coding, "raw");
}

TEST(Forecast, TheTableIsOfEveryPowerOfTwo) {
  const Case one(ModelKind::kAlexnet, 4);
  const schema::ForecastReply reply = plan_reply(one.question).value();
  ASSERT_EQ(reply.table.size(), 7u);
  EXPECT_EQ(reply.table.front().nodes, 1u);
  EXPECT_EQ(reply.table[2].sharded.step, reply.asked.sharded.step);
  EXPECT_EQ(reply.table.back().nodes, 64u);
  EXPECT_LE(reply.table.size(), schema::kMaxForecastRows);
}

TEST(Forecast, ABatchThatIsTooSmallIsRefused) {
  const Case one(ModelKind::kLenet, 2, schema::Compute::kTrain);
  EXPECT_TRUE(check_plan(one.job, 64).ok());
  EXPECT_NE(check_plan(one.job, 65).error().message.find("65 nodes"), std::string::npos);
}

TEST(Forecast, EveryModelHasAStepAndZeros) {
  for (const ModelKind model : values_of<ModelKind>()) {
    Case one(model, 5);
    EXPECT_GT(predict_row(one.question).direct.step, 0) << to_word(model);
    one.job.compute = schema::Compute::kTrain;
    const Zeros zeros = zeros_of(one.job);
    EXPECT_TRUE(zeros.share >= 0.68 && zeros.share < 1) << to_word(model) << ": c = 2.5 leaves no fewer";
  }
  Case lenet(ModelKind::kLenet);
  lenet.job.replay_zeros = 0.7;
  EXPECT_EQ(zeros_of(lenet.job).share, 0.7);
  lenet.job.compute = schema::Compute::kTrain;
  EXPECT_EQ(zeros_of(lenet.job).source, "91 % of all codes, as measured on MNIST at clip-sigma 2.5");
}

TEST(CodeBits, AreThoseOfTheirFormats) {
  EXPECT_NEAR(expected_bits(Coding::kRaw, 0.92, 3).codes, 1.08, 1e-9) << "a mask, 8 % have signs";
  const auto entropy = [](double z) { return -z * std::log2(z) - (1 - z) * std::log2((1 - z) / 2); };
  EXPECT_NEAR(expected_bits(Coding::kEntropy, 0.7, 3).codes, entropy(0.7) * kCodingLoss, 1e-9);
  EXPECT_NEAR(expected_bits(Coding::kEntropy, 0.7, 1).sums, entropy(0.7) * kCodingLoss, 1e-9) << "a sum of one";
  for (const schema::GradientFormat format : {schema::GradientFormat::kFloat16, schema::GradientFormat::kFloat32}) {
    Case one(ModelKind::kAlexnet, 4);
    one.job.gradients = format;
    one.job.last_layer = format;
    const double bits = format == schema::GradientFormat::kFloat16 ? 16 : 32;
    EXPECT_NEAR(one.step(ExchangeKind::kSharded).sent_bytes * 8 / 61'100'840, 0.75 * 2 * bits, 0.01 * bits);
  }
}

TEST(Flops, LeNetByHand) {
  // conv1 28*28*500 + conv2 14*14*25000 + fc1 1225000 + fc2 5000 multiply-adds.
  const engine::Model lenet = engine::make_model(ModelKind::kLenet);
  EXPECT_EQ(engine::training_operations(lenet), 6.0 * (28 * 28 * 500 + 14 * 14 * 25'000 + 1'225'000 + 5'000));
}

}  // namespace
}  // namespace tg::daemon
