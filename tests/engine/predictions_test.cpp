#include "engine/predictions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tg::engine {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Prediction wrong(std::size_t sample, std::uint32_t label, std::uint32_t said, double label_probability) {
  return {sample, label, said, 0.5, label_probability};
}

TEST(Predictions, AreTheHighestLogitAndItsShare) {
  const std::vector<float> logits = {0, std::log(3.F), -1000, 5, 5, 5, kNaN, kNaN, kNaN};
  const std::vector<std::int32_t> labels = {0, 2, 1};
  const std::vector<std::size_t> samples = {7, 8, 9};
  const std::vector<Prediction> all = predictions(logits, labels, samples);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].sample, 7u);
  EXPECT_EQ(all[0].label, 0u);
  EXPECT_EQ(all[0].said, 1u);
  EXPECT_NEAR(all[0].probability, 0.75, 1e-7);
  EXPECT_NEAR(all[0].label_probability, 0.25, 1e-7);
  EXPECT_EQ(all[1].said, 0u) << "the first of equals";
  EXPECT_NEAR(all[1].probability, 1.0 / 3, 1e-12);
  EXPECT_EQ(all[2].probability, 0) << "no number";
  EXPECT_EQ(all[2].label_probability, 0);
  EXPECT_TRUE(predictions({}, {}, {}).empty());
}

TEST(Predictions, AreCountedByClassAndPrediction) {
  const std::vector<Prediction> all = {wrong(0, 0, 0, 1), wrong(1, 0, 2, 0), wrong(2, 2, 2, 1), wrong(3, 0, 2, 0)};
  EXPECT_EQ(confusion_matrix(all, 3), (std::vector<std::uint32_t>{1, 0, 2, 0, 0, 0, 0, 0, 1}));
}

TEST(Predictions, ConfusedMostComesFirst) {
  std::vector<Prediction> all = {wrong(0, 2, 1, 0), wrong(1, 1, 2, 0), wrong(2, 1, 0, 0),
                                 wrong(3, 1, 0, 0), wrong(4, 1, 1, 1), wrong(5, 0, 0, 1)};
  const std::vector<ClassPair> pairs = most_confused(all, 2);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].label, 1u);
  EXPECT_EQ(pairs[0].said, 0u);
  EXPECT_EQ(pairs[0].count, 2u);
  EXPECT_EQ(pairs[0].of, 4u);
  EXPECT_EQ(pairs[1].label, 1u) << "the lower class of equals";
  EXPECT_EQ(pairs[1].said, 2u);
  EXPECT_EQ(most_confused(all, 9).size(), 3u);
}

TEST(Predictions, WrongestAreWrongAndTheLowerSampleOfEquals) {
  const std::vector<Prediction> all = {wrong(5, 0, 1, 0.2), wrong(4, 0, 1, 0.1), wrong(3, 0, 1, 0.2),
                                       wrong(2, 0, 0, 0.05), wrong(1, 0, 1, 0.4)};
  const std::vector<Prediction> most = wrongest(all, 3);
  ASSERT_EQ(most.size(), 3u);
  EXPECT_EQ(most[0].sample, 4u);
  EXPECT_EQ(most[1].sample, 3u);
  EXPECT_EQ(most[2].sample, 5u);
  EXPECT_EQ(wrongest(all, 9).size(), 4u) << "what is right is not wrong, however narrowly";
}

}  // namespace
}  // namespace tg::engine
