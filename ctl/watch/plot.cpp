#include "ctl/watch/plot.h"

#include <algorithm>
#include <cmath>

#include "ctl/format/table.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kScaleColumns = 8;  // "100.0 %", "0.1234" and a space

class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows, bool utf8)
      : across_(utf8 ? 2 : 1), down_(utf8 ? 4 : 1), width_(columns * across_), height_(rows * down_) {
    set_.resize(width_ * height_);
  }

  // Draws a line through the means: x runs over the steps, y down from the maximum.
  void draw(const std::vector<Series::Point>& points, double min, double max) {
    const double first = points.front().step, steps = std::max(points.back().step - first, 1.0);
    const double range = max > min ? max - min : 1;
    const auto x_of = [&](double step) { return on_axis((step - first) / steps, width_); };
    const auto y_of = [&](double value) { return on_axis((max - value) / range, height_); };
    double x = x_of(first), y = y_of(points.front().mean);
    std::size_t before = nearest(y);
    for (const Series::Point& point : points) {
      const double next_x = x_of(point.step), next_y = y_of(point.mean);
      for (std::size_t at = nearest(x); at <= nearest(next_x); ++at) {
        const double share = next_x > x ? std::clamp((static_cast<double>(at) - x) / (next_x - x), 0.0, 1.0) : 1;
        const std::size_t here = nearest(y + (next_y - y) * share);
        const std::size_t from = before + (here > before ? 1 : 0) - (here < before ? 1 : 0);  // in this column
        for (std::size_t i = std::min(from, here); i <= std::max(from, here); ++i) set_[i * width_ + at] = true;
        before = here;
      }
      x = next_x;
      y = next_y;
    }
  }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t x = 0; x < width_; x += across_) text += cell(x, row * down_);
    return text;
  }

 private:
  // A position on the axis, also for values that are not finite.
  static double on_axis(double share, std::size_t dots) {
    return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * static_cast<double>(dots - 1) : 0;
  }
  static std::size_t nearest(double value) { return static_cast<std::size_t>(std::lround(value)); }

  std::string cell(std::size_t x, std::size_t y) const {
    if (across_ == 1) return set_[y * width_ + x] ? "*" : " ";
    static constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned bits = 0;
    for (std::size_t i = 0; i < down_; ++i)
      for (std::size_t k = 0; k < across_; ++k) bits |= set_[(y + i) * width_ + x + k] ? kBits[i][k] : 0;
    if (bits == 0) return " ";
    return {'\xe2', static_cast<char>(0xa0 | bits >> 6), static_cast<char>(0x80 | (bits & 0x3f))};  // U+2800 and bits
  }

  std::size_t across_, down_, width_, height_;  // dots per character, dots in all
  std::vector<bool> set_;
};

std::string scale(double value, bool percent) {
  const std::string text = fit_line(percent ? format_percent(value, 1) : format_fixed(value, 4), kScaleColumns - 1);
  return std::string(kScaleColumns - 1 - schema::text_width(text), ' ') + text + " ";
}

}  // namespace

std::vector<std::string> plot(const Series& series, const PlotArea& area) {
  std::vector<std::string> lines(area.rows);
  if (series.empty() || area.rows == 0 || area.columns <= kScaleColumns) return lines;
  const auto by_mean = [](const Series::Point& one, const Series::Point& other) { return one.mean < other.mean; };
  const auto [min, max] = std::minmax_element(series.points().begin(), series.points().end(), by_mean);
  Dots dots(area.columns - kScaleColumns, area.rows, area.utf8);
  dots.draw(series.points(), min->mean, max->mean);
  for (std::size_t i = 0; i < area.rows; ++i) {
    const bool top = i == 0, bottom = i + 1 == area.rows && min->mean < max->mean;
    lines[i] = top      ? scale(max->mean, area.percent)
               : bottom ? scale(min->mean, area.percent)
                        : std::string(kScaleColumns, ' ');
    lines[i] += dots.row(i);
  }
  return lines;
}

}  // namespace tg::ctl
