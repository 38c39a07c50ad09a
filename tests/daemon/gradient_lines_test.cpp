// The codes of a segment, beside the plain rule's.
#include "daemon/simulate/gradient_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/step/job_layout.h"
#include "kernels/base/aligned_array.h"
#include "tests/plain/rules.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kMembers = 3;
constexpr std::uint32_t kRound = 6;  // leads to state 7

engine::SegmentTable three_segments() {
  std::vector<engine::Segment> segments(3);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    segments[s].name = "segment" + std::to_string(s);
    segments[s].element_count = s == 1 ? 10 : 700;
    segments[s].shape = {static_cast<std::int64_t>(segments[s].element_count)};
  }
  return engine::SegmentTable(segments);
}

struct GradientLines : testing::Test {
  GradientLines() {
    job.seed = 5;
    job.min_ternary_size = 11;
    simulation::Random random(3);
    for (std::size_t rank = 0; rank < kMembers; ++rank) {
      arrays.emplace_back(segments.padded_count());
      for (const engine::Segment& segment : segments.segments())
        for (std::size_t i = 0; i < segment.element_count; ++i)
          arrays.back()[segment.offset + i] = static_cast<float>(std::pow(2 * random.unit() - 1, 5));
    }
    for (const AlignedArray<float>& array : arrays) gradients.emplace_back(array.span());
  }
  std::vector<nlohmann::json> lines() const {
    const Layouts layouts = layouts_of(job, segments, kMembers, {});
    std::vector<nlohmann::json> read;
    for (const std::string& line :
         gradient_lines(kRound + 1, job, layouts.layout, segments, gradients, *kernels::available().front()))
      read.push_back(nlohmann::json::parse(line));
    return read;
  }

  const engine::SegmentTable segments = three_segments();
  schema::JobSpec job;
  std::vector<AlignedArray<float>> arrays;
  std::vector<std::span<const float>> gradients;
};

TEST_F(GradientLines, HaveTheCodesOfThePlainRule) {
  const std::vector<nlohmann::json> read = lines();
  ASSERT_EQ(read.size(), 4u);
  AlignedArray<float> mean(segments.padded_count());
  plain::make_rule("terngrad", {.members = kMembers})
      ->mean({*kernels::available().back(), job.seed, kRound}, segments, gradients, mean.span());
  for (const std::size_t s : {0, 2}) {
    const nlohmann::json& codes = read[s].at("codes");
    std::vector<std::uint64_t> sums(2 * kMembers + 1);
    for (std::size_t i = 0; i < segments[s].element_count; ++i) {
      const double sum = static_cast<double>(mean[segments[s].offset + i]) * kMembers / codes.at("unit").get<double>();
      ASSERT_NEAR(sum, std::round(sum), 1e-5);
      ++sums.at(static_cast<std::size_t>(std::lround(sum) + static_cast<long>(kMembers)));
    }
    EXPECT_EQ(codes.at("sums").get<std::vector<std::uint64_t>>(), sums);
    EXPECT_GT(sums.front() + sums.back(), 0u) << "not all levels occur";
    const auto counts = codes.at("counts").get<std::vector<std::uint64_t>>();
    EXPECT_EQ(counts.size(), 3u);
    EXPECT_EQ(counts[0] + counts[1] + counts[2], segments[s].element_count);
  }
}

TEST_F(GradientLines, FloatSegmentsHaveNoCodes) {
  const std::vector<nlohmann::json> read = lines();
  EXPECT_FALSE(read[1].contains("codes"));
  EXPECT_EQ(read[1].at("clipped_elements"), 0);
  EXPECT_FALSE(read[3].contains("codes")) << "of all as one vector";
}

TEST_F(GradientLines, HaveNoSumsWhereEachMemberHasItsOwnScaler) {
  job.scaler_sharing = schema::ScalerSharing::kNone;
  const std::vector<nlohmann::json> read = lines();
  EXPECT_TRUE(read[0].at("codes").contains("counts"));
  EXPECT_FALSE(read[0].at("codes").contains("sums"));
}

}  // namespace
}  // namespace tg::daemon
