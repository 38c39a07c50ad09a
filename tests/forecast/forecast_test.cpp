// The one answer: plan, start --dry-run and a start ask the same function and hear the same.
#include "daemon/forecast/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/forecast/machine.h"
#include "daemon/forecast/predict.h"
#include "daemon/forecast/zeros.h"
#include "daemon/membership/choose_exchange.h"
#include "schema/limits.h"
#include "tests/forecast/samples.h"

namespace tg::daemon {
namespace {

using schema::ExchangeKind;

schema::BenchReply sample_bench(double link_mbps = 941) {
  schema::BenchReply bench = assumed_bench({"lenet", 64, 1e-3, 10});
  bench.node = "node-a";
  bench.measured_ms = 1'700'000'000'000;
  bench.cores = bench.threads = 1;
  bench.link_mbps = link_mbps;
  bench.round_trip_seconds = 200e-6;
  return bench;
}

Question question(ModelKind model, std::uint64_t nodes) {
  Question one;
  one.job = replay_task(model).job;
  one.nodes = nodes;
  return one;
}

const schema::Outcome& chosen_of(const Forecast& forecast) {
  return forecast.chosen.exchange == ExchangeKind::kDirect ? forecast.reply.asked.direct : forecast.reply.asked.sharded;
}

// A plan asks with the table, a dry run without it, a start with what it has chosen by votes of the same link.
TEST(Forecast, PlanDryRunAndStartAgree) {
  std::size_t cases = 0;
  for (const ModelKind model : {ModelKind::kLenet, ModelKind::kCifarnet, ModelKind::kAlexnet}) {
    for (const std::uint64_t nodes : {2u, 3u, 4u, 8u}) {
      for (const double mbps : {10.0, 1000.0, 10'000.0}) {
        Question dry = question(model, nodes);
        Question plan = dry, start = dry;
        plan.table = nodes == 3;  // takes its time
        schema::Vote vote;
        vote.link_mbps = mbps;
        start.chosen = choose_exchange(asked_of(dry.job), std::vector<schema::Vote>(nodes, vote)).commit;
        const Forecast a = forecast(dry, sample_bench(mbps)).value(), b = forecast(plan, sample_bench(mbps)).value(),
                       c = forecast(start, sample_bench(mbps)).value();
        EXPECT_EQ(a.chosen, *start.chosen) << to_word(model) << ' ' << nodes << ' ' << mbps;
        EXPECT_EQ(a.chosen, b.chosen);
        for (const Forecast* other : {&b, &c}) {
          EXPECT_EQ(other->reply.coding, a.reply.coding);
          EXPECT_EQ(chosen_of(*other).step, chosen_of(a).step);
          EXPECT_EQ(chosen_of(*other).speed_up, chosen_of(a).speed_up);
          EXPECT_EQ(chosen_of(*other).sent_bytes, chosen_of(a).sent_bytes);
        }
        ++cases;
      }
    }
  }
  EXPECT_GE(cases, 20u);
}

TEST(Forecast, ALinkThatIsToldIsALineWhoeverTellsIt) {
  for (const double line : {100.0, 720.0, 1000.0}) {  // 720: more than kRawMbps, its payload is less
    Question by_option = question(ModelKind::kGooglenetSlim, 4), by_job = by_option;
    by_option.line_mbps = line;
    by_job.job.link_mbps = line;
    const Forecast a = forecast(by_option, sample_bench()).value(), b = forecast(by_job, sample_bench(0)).value();
    EXPECT_EQ(a.chosen, b.chosen);
    EXPECT_EQ(a.reply.payload_mbps, line * kPayloadShare);
    EXPECT_EQ(a.reply.line_mbps, line);
    EXPECT_EQ(chosen_of(a).step, chosen_of(b).step);
    schema::Vote vote;
    EXPECT_EQ(choose_exchange(asked_of(by_job.job), std::vector<schema::Vote>(4, vote)).commit, b.chosen);
  }
}

TEST(Forecast, ANodeThatComputesMoreOfTheBatchTakesLongerAndTheTableIsOfEqualParts) {
  Question even{train_task(ModelKind::kLenet, 64).job, 4};
  even.table = true;
  Question uneven = even;
  uneven.own_samples = 40;
  uneven.uneven = "node-a 40, node-b 8, node-c 8, node-d 8";
  const schema::ForecastReply a = forecast(even, sample_bench())->reply, b = forecast(uneven, sample_bench())->reply;
  EXPECT_EQ(a.asked.local_batch, 16u);
  EXPECT_EQ(b.asked.local_batch, 40u);
  EXPECT_NEAR(b.asked.direct.compute / a.asked.direct.compute, 2.5, 1e-9);
  EXPECT_EQ(b.asked.direct.sent_bytes, a.asked.direct.sent_bytes);
  EXPECT_NE(b.assumptions.back().find(uneven.uneven), std::string::npos);
  EXPECT_EQ(b.assumptions.size(), a.assumptions.size() + 1);
  EXPECT_EQ(b.table.back().local_batch, a.table.back().local_batch);
}

TEST(Forecast, ZerosAreThoseOfTheNetwork) {
  const auto answer = [](ModelKind model, const std::vector<std::string>& settings) {
    Question asked = question(model, 2);
    asked.job.compute = schema::Compute::kTrain;
    asked.job.last_layer = schema::GradientFormat::kTernary;
    asked.job.exchange = ExchangeKind::kDirect;
    asked.job.coding = schema::Coding::kEntropy;
    for (const std::string& setting : settings) EXPECT_TRUE(schema::set_job_key(asked.job, setting).ok()) << setting;
    return forecast(asked, sample_bench()).value().reply;
  };
  EXPECT_EQ(answer(ModelKind::kLenet, {}).assumptions.front(),
            "zeros: 91 % of all codes, as lenet had on MNIST at clip-sigma 2.5");
  const auto bits = [&](ModelKind model, const std::vector<std::string>& settings) {
    const schema::ForecastReply reply = answer(model, settings);
    return 8 * reply.asked.direct.sent_bytes / static_cast<double>(reply.parameters);
  };
  // The entropy of a code with a share z of zeros and signs alike, and what frames cost.
  const auto entropy = [](double z) { return -z * std::log2(z) - (1 - z) * std::log2((1 - z) / 2); };
  EXPECT_NEAR(bits(ModelKind::kLenet, {}) / entropy(0.91), 1, 0.05);
  EXPECT_NEAR(bits(ModelKind::kCifarnet, {}) / entropy(0.81), 1, 0.05);
  EXPECT_NEAR(bits(ModelKind::kAlexnetTwoColumn, {}) / entropy(0.86), 1, 0.05);
  EXPECT_NEAR(bits(ModelKind::kLenet, {"compute=replay", "replay-zeros=0.7"}) / entropy(0.7), 1, 0.05);
  EXPECT_NEAR(bits(ModelKind::kLenet, {"compute=replay", "replay-gradients=/x"}) / entropy(0.91), 1, 0.05);
  EXPECT_EQ(answer(ModelKind::kLenet, {"compute=replay", "replay-gradients=/x"}).assumptions.front(),
            "zeros: 91 % of all codes, as lenet had on MNIST at clip-sigma 2.5; nothing is computed");
  for (const ModelKind model : values_of<ModelKind>()) {
    schema::JobSpec job;
    job.model = model;
    const Zeros zeros = zeros_of(job);
    EXPECT_TRUE(zeros.share >= 0.68 && zeros.share < 1) << to_word(model) << ": c = 2.5 leaves no fewer";
  }
}

TEST(Forecast, TheTableEndsBeyondWhatARunAllows) {
  Question asked = question(ModelKind::kAlexnet, 4);
  asked.table = true;
  const schema::ForecastReply reply = forecast(asked, sample_bench())->reply;
  ASSERT_EQ(reply.table.size(), 10u);
  EXPECT_EQ(reply.table.front().nodes, 1u);
  EXPECT_EQ(reply.table.back().nodes, schema::kMaxForecastNodes);
  EXPECT_EQ(reply.asked.nodes, 4u);
  EXPECT_FALSE(reply.assumptions.empty());
  EXPECT_LT(reply.assumptions.size(), schema::kMaxAssumptions);
  EXPECT_LE(reply.table.size(), schema::kMaxForecastRows);
  asked.table = false;
  EXPECT_TRUE(forecast(asked, sample_bench())->reply.table.empty());
}

TEST(Forecast, WhatIsAskedBinds) {
  Question asked = question(ModelKind::kAlexnet, 8);
  asked.job.exchange = ExchangeKind::kDirect;
  asked.job.coding = schema::Coding::kRaw;
  EXPECT_EQ(forecast(asked, sample_bench(10))->reply.exchange, "direct");
  EXPECT_EQ(forecast(asked, sample_bench(10))->reply.coding, "raw");
  asked.job.exchange = std::nullopt;
  asked.job.scaler_sharing = schema::ScalerSharing::kNone;
  EXPECT_EQ(forecast(asked, sample_bench())->chosen.exchange, ExchangeKind::kDirect);
  asked = question(ModelKind::kAlexnet, 1);
  asked.job.exchange = ExchangeKind::kSharded;
  EXPECT_EQ(forecast(asked, sample_bench())->chosen.exchange, ExchangeKind::kDirect) << "alone";
}

TEST(Forecast, WhatIsNotKnownIsSaid) {
  const auto error_of = [](const Question& one, const schema::BenchReply& bench) {
    const Result<Forecast> answer = forecast(one, bench);
    return answer ? std::string() : answer.error().message;
  };
  EXPECT_NE(error_of(question(ModelKind::kAlexnet, 2), sample_bench(0)).find("link-mbps"), std::string::npos);
  EXPECT_EQ(error_of(question(ModelKind::kAlexnet, 1), sample_bench(0)), "") << "one node needs no link";
  schema::BenchReply poor = sample_bench();
  poor.codec.pop_back();
  EXPECT_NE(error_of(question(ModelKind::kAlexnet, 2), poor).find("no speed of apply"), std::string::npos);
  Question small = question(ModelKind::kLenet, 65);
  small.job.compute = schema::Compute::kTrain;
  small.job.global_batch = 64;
  EXPECT_NE(error_of(small, sample_bench()).find("65 nodes"), std::string::npos);
  small.job.model = ModelKind::kLenet;
  small.nodes = 2;
  EXPECT_NE(error_of(small, sample_bench()).find("compute=replay"), std::string::npos);
}

TEST(Forecast, SpeedsThatAreAssumedAreSaidToBe) {
  schema::BenchReply assumed = assumed_bench({"lenet", 16, 2e-3, 0});
  assumed.node = "node-a";
  assumed.link_mbps = 941;
  Question asked{train_task(ModelKind::kLenet, 64).job, 4};
  const schema::ForecastReply reply = forecast(asked, assumed)->reply;
  EXPECT_EQ(reply.measured_ms, 0);
  EXPECT_DOUBLE_EQ(reply.asked.direct.compute, 16 * 2e-3) << "as the preparation timed it";
  const auto says = [](const schema::ForecastReply& one) {
    for (const std::string& text : one.assumptions)
      if (text.find("speeds are assumed") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(says(reply));
  EXPECT_FALSE(says(forecast(asked, sample_bench())->reply));
}

}  // namespace
}  // namespace tg::daemon
