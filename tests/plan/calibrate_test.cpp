// Steps made with known coefficients give these coefficients back.
#include "daemon/forecast/calibrate.h"

#include <gtest/gtest.h>

#include "tests/plan/samples.h"

namespace tg::daemon {
namespace {

using schema::ExchangeKind;
using schema::MeasuredStep;

MeasuredStep made(const Machine& machine, const char* model, std::size_t nodes, double factor, double trip) {
  const Surroundings where{1000 * kPayloadShare, 2.0 / static_cast<double>(nodes), 0.68};
  const StepModel step =
      model_of(replay_task(model), machine, where, nodes, {ExchangeKind::kDirect, schema::Coding::kRaw});
  return {model,
          nodes,
          1000,
          where.cores,
          "direct",
          "raw",
          0.68,
          step.processor_seconds(factor),
          step.step_seconds(factor, trip)};
}

TEST(Calibrate, FindsTheCoefficientsThatMadeTheSteps) {
  const Machine machine = sample_machine();
  for (const double factor : {0.6, 1.0, 2.5}) {
    for (const double trip : {50e-6, 400e-6}) {
      const auto found = calibrate(
          machine, {made(machine, "lenet-caffe", 2, factor, trip), made(machine, "cifarnet-32", 2, factor, trip)});
      ASSERT_TRUE(found.ok());
      EXPECT_NEAR(found->cpu_factor, factor, 0.01 * factor);
      EXPECT_NEAR(found->trip_seconds, trip, 0.02 * trip);
      EXPECT_LT(found->worst, 0.01);
    }
  }
}

TEST(Calibrate, ARowIsPredictedWithItsOwnCoding) {
  Machine machine = sample_machine();
  machine.codec[0].costs.encode_codes[1] = machine.codec[0].costs.decode_codes[1] = 5e-9;  // entropy
  MeasuredStep row = made(machine, "cifarnet-32", 2, 1.5, 100e-6);
  const auto raw = calibrate(machine, {row});
  row.coding = "entropy";
  const auto entropy = calibrate(machine, {row});
  ASSERT_TRUE(raw.ok() && entropy.ok());
  EXPECT_NEAR(raw->cpu_factor, 1.5, 0.05);
  EXPECT_LT(entropy->cpu_factor, 0.8 * raw->cpu_factor) << "the same time of slower kernels";
}

TEST(Calibrate, NoiseIsSharedOut) {
  const Machine machine = sample_machine();
  std::vector<MeasuredStep> rows;
  for (int i = 0; i < 10; ++i) {
    rows.push_back(made(machine, i % 2 == 0 ? "lenet-caffe" : "cifarnet-32", 2, 1.5, 200e-6));
    rows.back().step_seconds *= i % 4 < 2 ? 1.05 : 0.95;
  }
  const auto found = calibrate(machine, rows);
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->cpu_factor, 1.5, 0.15);
  EXPECT_NEAR(found->worst, 0.05, 0.03);
}

TEST(Calibrate, ATripIsNeverNegative) {
  const Machine machine = sample_machine();
  MeasuredStep quick = made(machine, "lenet-caffe", 2, 1, 0);
  quick.step_seconds /= 3;
  const auto found = calibrate(machine, {quick});
  ASSERT_TRUE(found.ok());
  EXPECT_GE(found->trip_seconds, 0);
  EXPECT_GT(found->cpu_factor, 0);
}

TEST(Calibrate, OddRowsAreNamed) {
  const Machine machine = sample_machine();
  MeasuredStep row = made(machine, "lenet-caffe", 2, 1, 1e-4);
  row.model = "lenett";
  auto found = calibrate(machine, {made(machine, "lenet-caffe", 2, 1, 1e-4), row});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("measured step 2"), std::string::npos) << found.error().message;
  row.model = "lenet";
  row.exchange = "ring";
  found = calibrate(machine, {row});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("ring"), std::string::npos);
  row.exchange = "direct";
  row.coding = "zip";
  found = calibrate(machine, {row});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("zip"), std::string::npos);
}

}  // namespace
}  // namespace tg::daemon
