// A quantity over the steps of a run. Neighbouring steps are merged, so that at most kMaxPoints remain. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace tg::ctl {

class Series {
 public:
  static constexpr std::size_t kMaxPoints = 128;
  struct Point {
    double step = 0;  // the last of the merged steps
    double mean = 0, min = 0, max = 0;
    std::uint64_t count = 0;
  };

  // Steps ascend. A value that is not finite is left out.
  void add(std::uint64_t step, double value);
  const std::vector<Point>& points() const { return points_; }
  double last() const { return last_; }  // the last value; 0 if there is none
  std::uint64_t last_step() const { return points_.empty() ? 0 : static_cast<std::uint64_t>(points_.back().step); }
  bool empty() const { return points_.empty(); }

 private:
  void halve();

  std::vector<Point> points_;
  std::uint64_t width_ = 1;  // steps per point
  std::uint64_t bin_ = 0;    // the last point's
  double last_ = 0;
};

}  // namespace tg::ctl
