#include "daemon/exchange/gradient_statistics.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr float kLargestFloat16 = 65504;

}  // namespace

void GradientStatistics::begin_round(const Layout& layout) {
  layout_ = &layout;
  open_.clear();
  to_measure_.clear();
}

void GradientStatistics::ready(std::size_t bucket, double loss_sum) {
  const BucketLayout& layout = layout_->buckets[bucket];
  Open open{bucket, loss_sum, {}, {}, 0};
  Measure work{bucket, 0, {}};
  std::size_t elements = 0;  // in `work`
  const auto hand_over = [&] {
    const std::size_t next = work.first + work.slices.size();
    if (!work.slices.empty()) to_measure_.push_back(std::exchange(work, {bucket, next, {}}));
    elements = 0;
  };
  for (std::size_t s = layout.first_segment; s < layout.last_segment; ++s) {
    const engine::Segment& segment = segments_[s];
    if (segment.frozen) continue;
    for (std::size_t first = 0; first < segment.padded_count(); first += kSlice) {
      const Slice slice{s, segment.offset + first, std::min(kSlice, segment.padded_count() - first)};
      if (elements + slice.count > elements_of_a_measure_) hand_over();
      work.slices.push_back(slice);
      elements += slice.count;
      open.slices.push_back(slice);
    }
  }
  hand_over();
  open.missing = open.slices.size();
  open.statistics.resize(open.slices.size());
  open_.push_back(std::move(open));
}

Measure GradientStatistics::next() {
  TG_CHECK(has_next());
  Measure work = std::move(to_measure_.front());
  to_measure_.pop_front();
  return work;
}

void GradientStatistics::on_measured(const Measure& work, std::span<const kernels::Statistics> statistics) {
  const auto open =
      std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.bucket == work.bucket; });
  TG_CHECK(open != open_.end() && statistics.size() == work.slices.size(), work.bucket, statistics.size());
  std::copy(statistics.begin(), statistics.end(), open->statistics.begin() + static_cast<std::ptrdiff_t>(work.first));
  open->missing -= statistics.size();
}

std::optional<LocalBucket> GradientStatistics::take() {
  if (open_.empty() || open_.front().missing > 0) return std::nullopt;
  const Open open = std::move(open_.front());
  open_.pop_front();
  return local_bucket(open);
}

LocalBucket GradientStatistics::local_bucket(const Open& open) const {
  LocalBucket local{open.bucket, open.loss_sum, {}, {}, {}};
  for (std::size_t i = 0; i < open.slices.size();) {
    const std::size_t s = open.slices[i].segment;
    kernels::Statistics statistics = open.statistics[i];
    for (++i; i < open.slices.size() && open.slices[i].segment == s; ++i) statistics.join(open.statistics[i]);
    // A float16 has no room for more: it would become infinite on the way.
    const bool fits = layout_->formats[s] != GradientFormat::kFloat16 || statistics.max_abs <= kLargestFloat16;
    if (!(statistics.finite && fits) && !local.non_finite_segment) local.non_finite_segment = s;
    if (!layout_->coded(s)) continue;
    const CodeRule::Own own = rule_.own(statistics, segments_[s].element_count);
    local.scalers.push_back(own.scaler);
    local.clips.push_back(own.clip);
  }
  return local;
}

}  // namespace tg::daemon
