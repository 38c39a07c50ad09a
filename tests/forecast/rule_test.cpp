// The rule of choose_exchange against the step model: over a grid of meshes, how much longer the step of what it
// chooses is than that of the best choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "daemon/forecast/forecast.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;

constexpr double kMaxMeanRegret = 0.005, kMaxRegret = 0.09;
// The rule does not know of floats. Between two nodes it takes direct, where sharding would halve the work of their
// sums.
constexpr double kMaxRegretWithFloats = 0.2;

void expect_near_the_best(schema::GradientFormat last_layer, double most_regret) {
  double sum = 0, worst = 0;
  std::size_t cases = 0;
  std::string worst_case;
  for (const ModelKind model :
       {ModelKind::kLenet, ModelKind::kCifarnet, ModelKind::kGooglenetSlim, ModelKind::kAlexnet}) {
    schema::JobSpec job;
    job.last_layer = last_layer;
    job.compute = schema::Compute::kReplay;
    const engine::Model made = engine::make_model(model);
    for (const std::size_t nodes : {2u, 3u, 4u, 8u, 16u}) {
      for (const double mbps : {10.0, 50.0, 100.0, 250.0, 941.0, 2350.0, 9410.0}) {
        for (const double cores : {1.0, 4.0}) {
          for (const double zeros : {0.68, 0.92}) {
            StepQuestion question{made, job, nodes};
            question.cores = question.threads = cores;
            question.payload_mbps = mbps;
            question.zeros = zeros;
            const schema::Commit chosen = choice_of(question);
            const auto step = [&](ExchangeKind exchange, Coding coding) {
              schema::Commit choice = chosen;
              choice.exchange = exchange;
              choice.coding = coding;
              return predict_step(question, choice).step;
            };
            const double best =
                std::min({step(ExchangeKind::kDirect, Coding::kRaw), step(ExchangeKind::kDirect, Coding::kEntropy),
                          step(ExchangeKind::kSharded, Coding::kRaw), step(ExchangeKind::kSharded, Coding::kEntropy)});
            const double regret = step(chosen.exchange, chosen.coding) / best - 1;
            sum += regret;
            ++cases;
            if (regret <= worst) continue;
            worst = regret;
            char text[200];
            std::snprintf(text, sizeof text, "%s, %zu nodes, %.0f Mbit/s, %.0f cores, %.2f zeros", to_word(model),
                          nodes, mbps, cores, zeros);
            worst_case = text;
          }
        }
      }
    }
  }
  const double mean = sum / static_cast<double>(cases);
  std::printf("%zu cases, last layer %s: mean regret %.2f %%, worst %.1f %% (%s)\n", cases, to_word(last_layer),
              100 * mean, 100 * worst, worst_case.c_str());
  EXPECT_GE(cases, 300u);
  EXPECT_LE(mean, kMaxMeanRegret);
  EXPECT_LE(worst, most_regret) << worst_case;
}

TEST(Rule, IsNearTheBestChoiceOfTheStepModel) { expect_near_the_best(schema::GradientFormat::kTernary, kMaxRegret); }

TEST(Rule, IsNotFarFromItWithALastLayerOfFloats) {
  expect_near_the_best(schema::GradientFormat::kFloat32, kMaxRegretWithFloats);
}

}  // namespace
}  // namespace tg::daemon
