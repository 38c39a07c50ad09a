// The replay engine: gradients drawn with a wanted share of zero codes, or read from a file, reported as backward
// would.
#include "engine/replay/replay_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "engine/replay/gaussian.h"
#include "kernels/host_memory_space.h"

namespace tg::engine {
namespace {

constexpr std::size_t kElements = 1 << 20;

kernels::MemorySpace& replay_host() {
  static kernels::HostMemorySpace space(*kernels::available().back());
  return space;
}

AlignedArray<float> drawn(double zeros, std::uint64_t seed, std::uint32_t rank, std::uint32_t segment) {
  AlignedArray<float> values(kElements);
  GaussianGradients(zeros).fill(seed, rank, segment, values.span());
  return values;
}

double measured_zeros(double zeros) {
  const AlignedArray<float> values = drawn(zeros, 5, 1, 3);
  const kernels::Kernels& kernels = *kernels::available().front();
  const kernels::Statistics statistics = kernels.statistics(values.span());
  const float clip = kernels::clip_bound(statistics, kElements, 2.5F);
  AlignedArray<std::uint64_t> nonzero(kElements / kernels::kWordBits), negative(nonzero.size());
  kernels.ternarize(values.span(), 0, {5, 1, 3, 0}, {clip, std::min(clip, statistics.max_abs)},
                    {nonzero.span(), negative.span()});
  std::size_t nonzeros = 0, negatives = 0;
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    nonzeros += static_cast<std::size_t>(std::popcount(nonzero[i]));
    negatives += static_cast<std::size_t>(std::popcount(negative[i]));
  }
  EXPECT_NEAR(static_cast<double>(negatives) / static_cast<double>(nonzeros), 0.5, 0.01);
  return 1 - static_cast<double>(nonzeros) / kElements;
}

// Four deviations of a share of 2^20 draws are 0.002; the clip bound of the drawn sample adds less than that.
constexpr double kShareTolerance = 0.003;

TEST(GaussianGradients, CodesHaveTheWantedShareOfZeros) {
  EXPECT_NEAR(measured_zeros(0.68), 0.6836, kShareTolerance);  // what a plain normal gives: 1 - 0.3176 * 255/256
  EXPECT_EQ(GaussianGradients(0.68).normal_share(), 1.0);
  for (const double zeros : {0.75, 0.92, 0.99}) EXPECT_NEAR(measured_zeros(zeros), zeros, kShareTolerance) << zeros;
}

TEST(GaussianGradients, AreNormal) {
  const AlignedArray<float> values = drawn(0.68, 1, 0, 0);
  double squares = 0, sum = 0;
  std::size_t beyond_two = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    beyond_two += std::fabs(value) > 2 * GaussianGradients::kDeviation;
  }
  EXPECT_NEAR(std::sqrt(squares / kElements) / GaussianGradients::kDeviation, 1, 0.003);
  EXPECT_NEAR(sum / kElements / GaussianGradients::kDeviation, 0, 0.005);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kElements, 0.0455, 0.001);
}

TEST(GaussianGradients, DependOnSeedRankAndSegmentOnly) {
  const auto same = [](const AlignedArray<float>& a, const AlignedArray<float>& b) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < kElements; ++i) equal += a[i] == b[i];
    return static_cast<double>(equal) / kElements;
  };
  const AlignedArray<float> first = drawn(0.68, 1, 2, 3);
  EXPECT_EQ(same(first, drawn(0.68, 1, 2, 3)), 1.0);
  // 32768 magnitudes and two signs: chance agrees in 2^-16 of the elements.
  EXPECT_LT(same(first, drawn(0.68, 2, 2, 3)), 0.001);
  EXPECT_LT(same(first, drawn(0.68, 1, 3, 3)), 0.001);
  EXPECT_LT(same(first, drawn(0.68, 1, 2, 4)), 0.001);
}

TEST(ReplayEngine, ReportsEverySegmentLastFirstAndKeepsItsGradients) {
  const Model model = make_model(ModelKind::kLenet);
  const std::unique_ptr<Engine> engine =
      make_replay_engine(model, {.seed = 1, .rank = 0, .zeros = 0.68, .path = ""}, replay_host()).value();
  AlignedArray<float> gradients(model.segments.padded_count());
  std::vector<std::size_t> reported;
  const auto sink = [&](std::size_t first, std::size_t last) {
    EXPECT_EQ(last, first + 1);
    reported.push_back(first);
  };
  EXPECT_EQ(engine->forward(nullptr, {}), 0);
  engine->backward(1, gradients.data(), sink);
  EXPECT_EQ(reported, (std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 1, 0}));
  for (const Segment& segment : model.segments.segments()) {
    EXPECT_NE(gradients[segment.offset + segment.element_count - 1], 0) << segment.name;
    for (std::size_t i = segment.element_count; i < segment.padded_count(); ++i)
      ASSERT_EQ(gradients[segment.offset + i], 0) << segment.name << " padding " << i;
  }
  const std::vector<float> before(gradients.begin(), gradients.end());
  engine->backward(0.5F, gradients.data(), sink);
  EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.end()), before);
  EXPECT_EQ(reported.size(), 16u);
}

class RecordedGradients : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }
  void write(const std::vector<float>& values) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  std::string error() const {
    const auto engine = make_replay_engine(model_, {.seed = 1, .rank = 3, .zeros = 0.68, .path = path_}, replay_host());
    return engine.ok() ? "" : engine.error().message;
  }
  const Model model_ = make_model(ModelKind::kLenet);
  const std::string path_ = ::testing::TempDir() + "recorded-" + std::to_string(getpid()) + "-3.f32";
};

TEST_F(RecordedGradients, ComeFromTheFileOfTheRank) {
  std::vector<float> values(model_.segments.parameter_count());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  write(values);
  std::string pattern = path_;
  pattern.replace(pattern.rfind("-3.f32"), 6, "-{rank}.f32");
  const auto engine = make_replay_engine(model_, {.seed = 1, .rank = 3, .zeros = 0.68, .path = pattern}, replay_host());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  AlignedArray<float> gradients(model_.segments.padded_count());
  (*engine)->backward(1, gradients.data(), [](std::size_t, std::size_t) {});
  std::size_t next = 0;
  for (const Segment& segment : model_.segments.segments())
    for (std::size_t i = 0; i < segment.element_count; ++i)
      ASSERT_EQ(gradients[segment.offset + i], static_cast<float>(next++)) << segment.name << ' ' << i;
}

TEST_F(RecordedGradients, BadFilesAreNamedWithTheNextAction) {
  EXPECT_NE(error().find("replay-gradients = " + path_ + ": No such file"), std::string::npos) << error();
  EXPECT_NE(error().find("set replay-gradients = gaussian"), std::string::npos) << error();
  std::vector<float> values(model_.segments.parameter_count() - 1, 0.5F);
  write(values);
  EXPECT_NE(error().find("5024316 bytes are not the 5024320 of the 1256080 float32 gradients of lenet"),
            std::string::npos)
      << error();
  values.resize(model_.segments.parameter_count());
  values[77] = std::numeric_limits<float>::quiet_NaN();
  write(values);
  EXPECT_NE(error().find("element 77 is not finite"), std::string::npos) << error();
  values[77] = 0;
  write(values);
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace tg::engine
