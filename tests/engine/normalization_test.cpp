// The operator LRN, forward and backward, against its formula in double; with any number of threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdlib>
#include <ostream>
#include <random>

#include "engine/cpu/lrn/lrn.h"
#include "engine/cpu/stages/stage.h"
#include "engine/engine.h"
#include "engine/models/builder.h"

namespace tg::engine::cpu {
namespace {

constexpr double kFormulaTolerance = 1e-6;  // a few float32 roundings of values below 2

constexpr LocalResponseNormalization kAnyLayer{.radius = 4, .bias = 1.0F, .alpha = 0.1F, .beta = 0.75F};

struct Geometry {
  int batch, channels, side;
  LocalResponseNormalization layer;
};

void PrintTo(const Geometry& value, std::ostream* out) {
  *out << value.channels << " channels, radius " << value.layer.radius;
}

// The stage alone, on buffers of its own.
class Subject {
 public:
  Subject(const dnnl::memory::dims& dims, const LocalResponseNormalization& layer)
      : plan_{.inputs = {0}, .output = 1, .contributions = {Contribution::kWrites}} {
    model_.operators.push_back({"normalization", layer, {0}});
    const auto buffer = [&] { return arena_.view(arena_.add({0, 3}), image_desc(dims)); };
    input = {{}, buffer(), buffer()};
    output = {{}, buffer(), buffer()};
    stage =
        make_stage<Cpu>({library, arena_, model_, plan_, static_cast<int>(dims[0]), true, 0, 1, 2, {input}, output});
    const Placement placement = place_apart(arena_.needs());
    memory_ = AlignedArray<std::byte>(placement.bytes);
    arena_.bind(placement, memory_.data());
    library.allocate_scratchpad();
  }
  Library library;
  Activation input, output;
  std::unique_ptr<Stage> stage;

 private:
  Model model_;
  const StagePlan plan_;
  Arena arena_{library};
  AlignedArray<std::byte> memory_;
};

class Normalization : public testing::TestWithParam<Geometry> {};

TEST_P(Normalization, EqualsTheFormula) {
  const auto& [batch, channels, side, layer] = GetParam();
  Subject subject({batch, channels, side, side}, layer);

  const std::size_t pixels = static_cast<std::size_t>(batch) * side * side;
  float* const x = floats_of(subject.input.value);
  const float* const y = floats_of(subject.output.value);
  float* const dy = floats_of(subject.output.gradient);
  const float* const dx = floats_of(subject.input.gradient);
  std::mt19937_64 random(41);
  std::uniform_real_distribution<float> value(-2.0F, 2.0F);
  for (std::size_t i = 0; i < pixels * channels; ++i) {
    x[i] = value(random);
    dy[i] = value(random);
  }
  subject.stage->forward({});
  subject.stage->backward_data({});

  // y_c = x_c d_c^-beta, d_c = bias + alpha sum x_k^2;
  // dx_c = dy_c d_c^-beta - 2 alpha beta x_c sum over the same window of dy_k x_k d_k^-(beta+1).
  for (std::size_t p = 0; p < pixels; ++p) {
    const float* xp = x + p * channels;
    const float* dyp = dy + p * channels;
    const auto window_sum = [&](int c, auto term) {
      double sum = 0;
      for (int k = std::max(0, c - layer.radius); k <= std::min(channels - 1, c + layer.radius); ++k) sum += term(k);
      return sum;
    };
    std::vector<double> d(channels);
    for (int c = 0; c < channels; ++c) {
      d[c] = layer.bias + layer.alpha * window_sum(c, [&](int k) { return static_cast<double>(xp[k]) * xp[k]; });
    }
    for (int c = 0; c < channels; ++c) {
      ASSERT_NEAR(y[p * channels + c], xp[c] * std::pow(d[c], -layer.beta), kFormulaTolerance) << p << ' ' << c;
      const double carried =
          window_sum(c, [&](int k) { return static_cast<double>(dyp[k]) * xp[k] * std::pow(d[k], -layer.beta - 1.0); });
      const double expected = dyp[c] * std::pow(d[c], -layer.beta) - 2.0 * layer.alpha * layer.beta * xp[c] * carried;
      ASSERT_NEAR(dx[p * channels + c], expected, kFormulaTolerance * (1 + std::abs(expected))) << p << ' ' << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Normalization,
    testing::Values(Geometry{2, 64, 5, {.radius = 4, .bias = 1.0F, .alpha = 0.001F / 9.0F, .beta = 0.75F}},
                    Geometry{1, 64, 3, {.radius = 4, .bias = 1.0F, .alpha = 0.1F, .beta = 0.75F}},
                    Geometry{2, 32, 4, {.radius = 2, .bias = 2.0F, .alpha = 0.05F, .beta = 0.75F}},
                    Geometry{2, 10, 3, {.radius = 1, .bias = 1.0F, .alpha = 0.2F, .beta = 0.75F}},
                    Geometry{1, 5, 2, {.radius = 4, .bias = 1.0F, .alpha = 0.3F, .beta = 0.75F}}),
    [](const testing::TestParamInfo<Geometry>& each) { return "case_" + std::to_string(each.index); });

// Output and input gradient of the operator made for `threads` threads.
std::vector<float> results(int threads, std::vector<std::string>& implementations) {
  omp_set_num_threads(threads);
  Subject subject({3, 20, 5, 5}, kAnyLayer);
  const std::size_t count = float_count(subject.input.value);
  float* const x = floats_of(subject.input.value);
  float* const dy = floats_of(subject.output.gradient);
  std::mt19937_64 random(42);
  std::uniform_real_distribution<float> value(-2.0F, 2.0F);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = value(random);
    dy[i] = value(random);
  }
  subject.stage->forward({});
  subject.stage->backward_data({});
  const float* const y = floats_of(subject.output.value);
  const float* const dx = floats_of(subject.input.gradient);
  std::vector<float> all(y, y + count);
  all.insert(all.end(), dx, dx + count);
  implementations = subject.library.implementations();
  return all;
}

TEST(NormalizationOperator, HasTheSameBitsOnAnyNumberOfThreads) {
  std::vector<std::string> implementations;
  const std::vector<float> one = results(1, implementations);
  for (const int threads : {2, 3, 80}) EXPECT_EQ(results(threads, implementations), one) << threads;  // 75 rows
}

TEST(NormalizationOperator, FollowsTheLimitOfOneDnn) {
  std::vector<std::string> implementations;
  results(1, implementations);
  ASSERT_EQ(implementations.size(), 1u);
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string best = lrn::available().front()->name;
  const std::string expected = limit != nullptr && std::string(limit) == "AVX2" && best == "avx512" ? "avx2" : best;
  EXPECT_EQ(implementations[0], "normalization: lrn:" + expected);
}

TEST(NormalizationOperator, RefusesAnotherExponent) {
  const Model model = ModelBuilder("other", {3, 8, 8})
                          .convolution("conv1", {4, 3}, {})
                          .normalization({.radius = 2, .bias = 1.0F, .alpha = 0.1F, .beta = 0.5F})
                          .dense("fc1", 3, {})
                          .build()
                          .value();
  const auto engine = make_cpu_engine(model, {});
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("beta 0.5"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace tg::engine::cpu
