#include "ctl/report/series.h"

#include <algorithm>
#include <cmath>

namespace tg::ctl {
namespace {

void merge_points(Series::Point& one, const Series::Point& next) {
  const double count = static_cast<double>(one.count), more = static_cast<double>(next.count);
  one.mean = (one.mean * count + next.mean * more) / (count + more);
  one.min = std::min(one.min, next.min);
  one.max = std::max(one.max, next.max);
  one.step = next.step;
  one.count += next.count;
}

}  // namespace

void Series::add(std::uint64_t step, double value) {
  if (!std::isfinite(value)) return;
  last_ = value;
  const Point point{static_cast<double>(step), value, value, value, 1};
  if (!points_.empty() && step / width_ == bin_) return merge_points(points_.back(), point);
  if (points_.size() == kMaxPoints) {
    halve();
    return add(step, value);
  }
  bin_ = step / width_;
  points_.push_back(point);
}

// Doubles the width. A point belongs to the bin of its last step.
void Series::halve() {
  width_ *= 2;
  std::vector<Point> fewer;
  for (const Point& point : points_) {
    const std::uint64_t bin = static_cast<std::uint64_t>(point.step) / width_;
    if (!fewer.empty() && bin == bin_)
      merge_points(fewer.back(), point);
    else
      fewer.push_back(point);
    bin_ = bin;
  }
  points_ = std::move(fewer);
}

}  // namespace tg::ctl
