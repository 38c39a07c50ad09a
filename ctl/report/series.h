// One quantity over the steps of a run, however many there are: neighbouring steps are put together, so that at most
// kMaxPoints remain. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace tg::ctl {

class Series {
 public:
  static constexpr std::size_t kMaxPoints = 128;
  struct Point {
    double step = 0;  // the last one of those that were put together
    double mean = 0, least = 0, most = 0;
    std::uint64_t count = 0;
  };

  // Steps ascend. What is not finite is left out.
  void add(std::uint64_t step, double value);
  const std::vector<Point>& points() const { return points_; }
  double last() const { return last_; }  // the value that came last; 0 of none
  std::uint64_t last_step() const { return points_.empty() ? 0 : static_cast<std::uint64_t>(points_.back().step); }
  bool empty() const { return points_.empty(); }

 private:
  void halve();

  std::vector<Point> points_;
  std::uint64_t width_ = 1;  // steps of a point
  std::uint64_t bin_ = 0;    // of the last point
  double last_ = 0;
};

}  // namespace tg::ctl
