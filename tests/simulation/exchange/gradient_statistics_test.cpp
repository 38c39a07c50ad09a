// Whichever threads measure the slices of a gradient, in whatever order: the buckets come out in their own order, with
// the same numbers.
#include "daemon/exchange/gradient_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/simulation/exchange/plain_segments.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

const kernels::Kernels& scalar() { return *kernels::available().back(); }

// A small segment, one of two slices and a bit, a small one again.
const engine::SegmentTable& measured_segments() {
  static const engine::SegmentTable table =
      simulation::plain_segments({1000, 2 * GradientStatistics::kSlice + 700, 3000});
  return table;
}

struct Gradient : testing::Test {
  Gradient() {
    LayoutOptions options;
    options.members = 2;
    options.bucket_parameters = 4000;  // two buckets: the last two segments, and the first
    layout = make_layout(measured_segments(), options);
    simulation::Random random(3);
    for (const engine::Segment& one : measured_segments().segments())
      for (std::size_t i = 0; i < one.element_count; ++i)
        values[one.offset + i] = static_cast<float>(random.unit() - 0.5);
    statistics.begin_round(layout);
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) statistics.ready(b, static_cast<double>(b));
    while (statistics.has_next()) works.push_back(statistics.next());
  }
  void measure(const Measure& work) {
    std::vector<kernels::Statistics> all;
    for (const Slice& slice : work.slices)
      all.push_back(scalar().statistics(values.span().subspan(slice.begin, slice.count)));
    statistics.on_measured(work, all);
  }
  Layout layout;
  AlignedArray<float> values = AlignedArray<float>(measured_segments().padded_count());
  GradientStatistics statistics = GradientStatistics(measured_segments(), {});
  std::vector<Measure> works;
};

// Frozen segments at every place: each bucket has something to send, and what is sent is all that is trained, once.
TEST(FrozenSegments, AreInNoChunkNorMeasured) {
  for (unsigned frozen = 0; frozen < 31; ++frozen) {
    std::vector<engine::Segment> all = simulation::plain_segments({1000, 2000, 700, 5000, 900}).segments();
    for (std::size_t s = 0; s < all.size(); ++s) all[s].frozen = (frozen >> s & 1) != 0;
    const engine::SegmentTable segments(std::move(all));
    for (const std::size_t bucket_parameters : {1u, 3000u, 100'000u}) {
      SCOPED_TRACE(std::to_string(frozen) + ", " + std::to_string(bucket_parameters));
      LayoutOptions options;
      options.members = 3;
      options.exchange = schema::ExchangeKind::kSharded;
      options.bucket_parameters = bucket_parameters;
      const Layout layout = make_layout(segments, options);
      GradientStatistics statistics(segments, {});
      statistics.begin_round(layout);
      std::vector<std::size_t> sent(segments.size()), measured(segments.size()), scalers(segments.size());
      std::size_t last = segments.size();
      for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
        const BucketLayout& bucket = layout.buckets[b];
        EXPECT_EQ(bucket.last_segment, std::exchange(last, bucket.first_segment));
        EXPECT_LT(bucket.first_chunk, bucket.last_chunk);
        for (const std::size_t s : bucket.coded_segments) ++scalers[s];
        statistics.ready(b, 0);
      }
      EXPECT_EQ(last, 0u);
      for (const ChunkLayout& chunk : layout.chunks)
        for (const ChunkPart& part : chunk.parts) sent[part.segment] += part.count;
      while (statistics.has_next())
        for (const Slice& slice : statistics.next().slices) measured[slice.segment] += slice.count;
      for (std::size_t s = 0; s < segments.size(); ++s) {
        EXPECT_EQ(sent[s], segments[s].frozen ? 0 : segments[s].padded_count()) << s;
        EXPECT_EQ(measured[s], sent[s]) << s;
        EXPECT_EQ(scalers[s], segments[s].frozen ? 0u : 1u) << s;
      }
    }
  }
}

TEST_F(Gradient, SlicesCoverEverySegmentOnce) {
  std::vector<std::size_t> covered(measured_segments().size());
  for (const Measure& work : works) {
    std::size_t elements = 0;
    for (const Slice& slice : work.slices) {
      EXPECT_EQ(slice.begin, measured_segments()[slice.segment].offset + covered[slice.segment]);
      covered[slice.segment] += slice.count;
      elements += slice.count;
    }
    EXPECT_LE(elements, GradientStatistics::kSlice);
  }
  for (std::size_t s = 0; s < covered.size(); ++s) EXPECT_EQ(covered[s], measured_segments()[s].padded_count());
  EXPECT_EQ(layout.buckets.size(), 2u);
  EXPECT_GE(works.size(), 4u) << "several threads can share a large segment";
}

TEST_F(Gradient, ABucketInOnePieceHasTheSameSlices) {
  GradientStatistics whole(measured_segments(), {});
  whole.set_slice_elements(GradientStatistics::kWholeBucket);
  whole.begin_round(layout);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) whole.ready(b, 0);
  std::vector<std::size_t> begins, tasks_begin;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    ASSERT_TRUE(whole.has_next());
    const Measure work = whole.next();
    EXPECT_EQ(work.bucket, b);
    for (const Slice& slice : work.slices) begins.push_back(slice.begin);
  }
  EXPECT_FALSE(whole.has_next()) << "one task a bucket";
  for (const Measure& work : works)
    for (const Slice& slice : work.slices) tasks_begin.push_back(slice.begin);
  EXPECT_EQ(begins, tasks_begin);
}

TEST_F(Gradient, BucketsComeInTheirOrderWhateverIsMeasuredFirst) {
  std::reverse(works.begin(), works.end());
  for (std::size_t i = 0; i + 1 < works.size(); ++i) {
    measure(works[i]);
    EXPECT_FALSE(statistics.take()) << "bucket 0 is measured last";
  }
  measure(works.back());
  for (std::size_t b = 0; b < 2; ++b) {
    const auto bucket = statistics.take();
    ASSERT_TRUE(bucket);
    EXPECT_EQ(bucket->bucket, b);
    EXPECT_EQ(bucket->loss_sum, static_cast<double>(b));
  }
  EXPECT_FALSE(statistics.take());
}

TEST_F(Gradient, ALargeSegmentsNumbersAreThoseOfAllItsElements) {
  for (const Measure& work : works) measure(work);
  const auto bucket = statistics.take();
  ASSERT_TRUE(bucket);
  const engine::Segment& large = measured_segments()[1];
  long double sum = 0, squares = 0;
  float most = 0;
  for (std::size_t i = 0; i < large.element_count; ++i) {
    const long double g = values[large.offset + i];
    sum += g;
    squares += g * g;
    most = std::max(most, std::fabs(values[large.offset + i]));
  }
  const long double count = static_cast<long double>(large.element_count);
  const double sigma = static_cast<double>(std::sqrt(squares / count - sum / count * (sum / count)));
  EXPECT_NEAR(bucket->clips.front() / (2.5 * sigma), 1, 1e-6);
  EXPECT_EQ(bucket->scalers.front(), std::min(most, bucket->clips.front()));
}

TEST_F(Gradient, OneBadElementOfAnySliceIsNamed) {
  values[measured_segments()[1].offset + measured_segments()[1].element_count - 1] =
      std::numeric_limits<float>::quiet_NaN();
  for (const Measure& work : works) measure(work);
  EXPECT_EQ(statistics.take()->non_finite_segment, 1u);
  EXPECT_FALSE(statistics.take()->non_finite_segment);
}

}  // namespace
}  // namespace tg::daemon
