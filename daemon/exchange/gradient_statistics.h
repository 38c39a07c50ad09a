// The statistics of a step's gradient, bucket by bucket: cut into slices that several threads may take, joined in
// order.
//
//   ready(bucket) -> next() ... measured() of every slice -> take(): what the bucket's rule says of them
//
// A slice is kSlice elements of one segment, whatever the number of threads and the size of a Measure, so the sums do
// not depend on either, to the last bit. Buckets come out in the order in which they became ready. Pure; owned by the
// thread that owns the Exchange.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "daemon/exchange/code_rule.h"
#include "daemon/exchange/layout.h"
#include "daemon/exchange/work.h"
#include "engine/segment.h"
#include "kernels/types.h"

namespace tg::daemon {

// This node's results for one bucket whose gradient has been measured.
struct LocalBucket {
  std::size_t bucket = 0;
  double loss_sum = 0;
  // By coded segment of the bucket, in order: the two parts of CodeRule::Own.
  std::vector<float> scalers, clips;
  std::optional<std::size_t> non_finite_segment;
};

class GradientStatistics {
 public:
  // Elements: some 200 us of reading, so that a helper is free again soon.
  static constexpr std::size_t kSlice = 512u << 10;
  static_assert(kSlice % kernels::kBlock == 0, "every slice begins at a block");
  // Elements of a Measure: on a device all slices of a bucket, since a slice alone fills a part of its grid.
  static constexpr std::size_t kWholeBucket = std::numeric_limits<std::size_t>::max();

  GradientStatistics(const engine::SegmentTable& segments, const CodeRule& rule) : segments_(segments), rule_(rule) {}

  void begin_round(const Layout& layout);
  void ready(std::size_t bucket, double loss_sum);
  bool has_next() const { return !to_measure_.empty(); }
  Measure next();  // about as many elements as set_slice_elements() said
  void set_slice_elements(std::size_t elements) { elements_of_a_measure_ = elements; }
  void on_measured(const Measure& work, std::span<const kernels::Statistics> statistics);

  // The next bucket, if it has been measured.
  std::optional<LocalBucket> take();

 private:
  struct Open {
    std::size_t bucket = 0;
    double loss_sum = 0;
    std::vector<Slice> slices;
    std::vector<kernels::Statistics> statistics;  // by slice
    std::size_t missing = 0;                      // slices
  };
  LocalBucket local_bucket(const Open& open) const;

  const engine::SegmentTable& segments_;
  const CodeRule rule_;
  std::size_t elements_of_a_measure_ = kSlice;
  const Layout* layout_ = nullptr;
  std::deque<Open> open_;           // in the order of ready()
  std::deque<Measure> to_measure_;  // not yet handed out
};

}  // namespace tg::daemon
