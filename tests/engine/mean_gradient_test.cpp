// The mean of N members' gradients is the gradient of the whole batch, whatever the split: step after step from one
// state, N engines on their shares against one engine on everything.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/dataset.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

// Both sides add the same float32 products in another order: a few units in the last place per segment.
constexpr double kMeanTolerance = 1e-5;
// Rounding may let one sample's near-tie in a max pooling or a ReLU fall the other way, which moves that sample's share
// of the gradient to a neighbour: rare, small, and no error of the split.
constexpr double kTieTolerance = 1e-2;
constexpr int kMaxTies = 2;  // steps of a case
constexpr std::uint64_t kDropoutSeed = 7;

struct Case {
  const char* name;
  std::uint64_t batch;
  std::vector<std::uint16_t> weights;  // the members'
  std::size_t samples;                 // the training set's: small ones make steps cross epochs
  std::uint64_t steps;
};

// Engines of one side, and the mean of their gradients.
class Side {
 public:
  Side(const Model& model, const Case& c, const std::vector<std::uint16_t>& weights)
      : model_(model), case_(c), members_(static_cast<int>(weights.size())), shares_(split(c.batch, weights)) {
    for (const Share& share : shares_) {
      Result<std::unique_ptr<Engine>> engine = make_cpu_engine(model, {1, share.count, 1});
      if (!engine.ok()) throw std::runtime_error(engine.error().message);
      engines_.push_back(std::move(engine).value());
      gradients_.emplace_back(model.segments.padded_count());
    }
    mean_ = AlignedArray<float>(model.segments.padded_count());
  }

  // Returns the mean loss.
  double step(const Dataset& data, std::uint64_t k, const float* parameters) {
    double loss = 0;
    const Recipe recipe = make_recipe(data, model_.input).value();
    std::fill(mean_.begin(), mean_.end(), 0.0f);
    const float factor = static_cast<float>(static_cast<double>(members_) / static_cast<double>(case_.batch));
    for (int rank = 0; rank < members_; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      SampleStream stream(kDropoutSeed, data.train.count());
      Batch batch;
      batch.count = shares_[at].count;
      fill_training_batch(data, recipe, stream, kDropoutSeed, k * case_.batch + shares_[at].first, batch);
      loss += engines_[at]->forward(parameters, batch);
      engines_[at]->backward(factor, gradients_[at].data(), [](std::size_t, std::size_t) {});
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += gradients_[at][i] / static_cast<float>(members_);
    }
    return loss / static_cast<double>(case_.batch);
  }
  std::span<const float> mean() const { return mean_.span(); }

 private:
  const Model& model_;
  const Case& case_;
  const int members_;
  const std::vector<Share> shares_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<AlignedArray<float>> gradients_;
  AlignedArray<float> mean_;
};

double relative_distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(difference / size);
}

class MeanGradient : public testing::TestWithParam<Case> {};

TEST_P(MeanGradient, IsThatOfTheWholeBatchAtEveryStep) {
  const Case& c = GetParam();
  const Model model = make_model(ModelKind::kLenet);
  const auto data = load_dataset({DatasetKind::kSynthetic, "", 3, c.samples, 10}).value();
  Side whole(model, c, {1}), split(model, c, c.weights);
  AlignedArray<float> parameters(model.segments.padded_count()), next(model.segments.padded_count());
  initialize(model.segments, kDropoutSeed, parameters.data());
  kernels::Update update = update_for_step({OptimizerKind::kSgd, {}, 0, 0, 0, 0}, 0);
  update.scale = 1;
  double worst = 0;
  int ties = 0;
  for (std::uint64_t k = 0; k < c.steps; ++k) {
    const double loss = whole.step(*data, k, parameters.data());
    const double split_loss = split.step(*data, k, parameters.data());
    ASSERT_NEAR(split_loss / loss, 1, kMeanTolerance) << "step " << k;
    double worst_here = 0;
    for (const Segment& segment : model.segments.segments()) {
      const double distance = relative_distance(split.mean().subspan(segment.offset, segment.element_count),
                                                whole.mean().subspan(segment.offset, segment.element_count));
      ASSERT_LT(distance, kTieTolerance) << segment.name << " in step " << k;
      worst_here = std::max(worst_here, distance);
    }
    if (worst_here >= kMeanTolerance)
      ++ties;
    else
      worst = std::max(worst, worst_here);
    kernels::available().back()->apply_floats(update, whole.mean(), {parameters.span(), {}, {}}, {next.span(), {}, {}});
    std::swap(parameters, next);
  }
  EXPECT_LE(ties, kMaxTies);
  RecordProperty("worst_relative_distance", std::to_string(worst));
  std::printf("%s: worst relative distance of a segment's gradient in %d steps: %.2g; steps with a tie: %d\n", c.name,
              static_cast<int>(c.steps), worst, ties);
}

INSTANTIATE_TEST_SUITE_P(Splits, MeanGradient,
                         testing::Values(Case{"FourEvenMembers", 32, {1, 1, 1, 1}, 600, 100},
                                         Case{"ThreeUnevenMembersAcrossEpochs", 50, {1, 1, 1}, 145, 12},
                                         Case{"ThreeMembersOfWeights1And4And2", 48, {1, 4, 2}, 600, 12}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tg::engine
