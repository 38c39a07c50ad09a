#include "ctl/report/chart.h"

#include <algorithm>
#include <cmath>

#include "ctl/format/table.h"
#include "ctl/report/markup.h"

namespace tg::ctl {
namespace {

// The frame around the curves, in units of the view box.
constexpr double kWidth = 440, kHeight = 210, kLeft = 56, kRight = 418, kTop = 10, kBottom = 174;
constexpr int kTicks = 5;

// 1, 2 or 5 times a power of ten, so that the range has about kTicks of them.
double tick_of(double range) {
  const double rough = range / kTicks, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    bool any = false;
    for (const Series* series : chart.lines) {
      for (const Series::Point& point : series->points()) {
        const double min = banded(series) ? point.min : point.mean, max = banded(series) ? point.max : point.mean;
        min_ = any ? std::min(min_, min) : min;
        max_ = any ? std::max(max_, max) : max;
        last_step_ = std::max(last_step_, point.step);
        any = true;
      }
    }
    logarithmic_ = chart.logarithmic && min_ > 0 && max_ > 2 * min_;
    if (logarithmic_) {
      min_ = std::log10(min_);
      max_ = std::log10(max_);
    }
    if (max_ - min_ < 1e-12 * std::max(1.0, std::abs(max_))) {  // all values are equal
      const double room = max_ == 0 ? 1 : std::abs(max_) / 2;
      min_ -= room;
      max_ += room;
    }
    if (chart.percent) {
      min_ = std::max(min_, 0.0);
      max_ = std::min(max_, 1.0);
    }
  }

  std::string svg() const {
    std::string text = "<svg viewBox=\"0 0 " + px(kWidth) + " " + px(kHeight) + "\" role=\"img\"><title>" +
                       escaped(chart_.title) + "</title>\n" + upright_axis() + level_axis();
    for (const std::uint64_t step : chart_.marks)
      text += svg_line(x(static_cast<double>(step)), kTop, x(static_cast<double>(step)), kBottom, "class=\"mark\"");
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) text += curve(*chart_.lines[i], i);
    return text + "</svg>\n";
  }

 private:
  bool banded(const Series* series) const { return chart_.band && series == chart_.lines.front(); }
  double x(double step) const { return kLeft + (kRight - kLeft) * step / std::max(last_step_, 1.0); }
  double y(double value) const {
    const double shown = logarithmic_ ? std::log10(value) : value;
    return kBottom - (kBottom - kTop) * (shown - min_) / (max_ - min_);
  }
  std::string value_text(double value, double tick) const {
    if (chart_.percent) return format_percent(value, tick < 0.01 ? 1 : 0);
    const int digits = static_cast<int>(std::ceil(-std::log10(tick) - 1e-9));
    return format_fixed(value, std::clamp(digits, 0, 9));
  }

  std::string upright_axis() const {
    std::string text;
    if (logarithmic_) {
      constexpr double kFine = 4, kMaxDecades = 6;
      const double decades = max_ - min_, every = std::max(std::ceil(decades / kMaxDecades), 1.0);
      for (double decade = std::floor(min_); decade <= max_; decade += every)
        for (const double factor : {1.0, 2.0, 5.0}) {
          const double value = factor * std::pow(10, decade);
          if (std::log10(value) < min_ || std::log10(value) > max_ || (factor > 1 && decades > kFine)) continue;
          text += svg_line(kLeft, y(value), kRight, y(value), "class=\"grid\"");
          text += svg_text(kLeft - 6, y(value) + 4, "end", value_text(value, value));
        }
      return text;
    }
    const double tick = tick_of(max_ - min_);
    for (double value = std::ceil(min_ / tick) * tick; value <= max_ + tick * 1e-9; value += tick) {
      text += svg_line(kLeft, y(value), kRight, y(value), "class=\"grid\"");
      text += svg_text(kLeft - 6, y(value) + 4, "end", value_text(std::abs(value) < tick * 1e-9 ? 0 : value, tick));
    }
    return text;
  }
  std::string level_axis() const {
    std::string text = svg_line(kLeft, kBottom, kRight, kBottom, "class=\"axis\"");
    const double tick = std::max(tick_of(std::max(last_step_, 1.0)), 1.0);
    for (double step = 0; step <= last_step_; step += tick)
      text += svg_text(x(step), kBottom + 16, "middle", format_fixed(step, 0));
    return text + svg_text(kRight, kHeight - 2, "end", "step");
  }
  std::string curve(const Series& series, std::size_t which) const {
    std::string points, above, below, text;
    for (const Series::Point& point : series.points()) {
      points += px(x(point.step)) + "," + px(y(point.mean)) + " ";
      above += px(x(point.step)) + "," + px(y(point.max)) + " ";
      below.insert(0, px(x(point.step)) + "," + px(y(point.min)) + " ");
    }
    if (banded(&series) && series.points().size() > 1)
      text = "<polygon points=\"" + above + below + "\" class=\"band\"/>\n";
    text += "<polyline points=\"" + points + "\" class=\"line" + std::to_string(which + 1) + "\"/>\n";
    constexpr std::size_t kDotted = 40;
    if (series.points().size() > kDotted) return text;
    for (const Series::Point& point : series.points())
      text += "<circle cx=\"" + px(x(point.step)) + "\" cy=\"" + px(y(point.mean)) + "\" r=\"2.5\" class=\"dot" +
              std::to_string(which + 1) + "\"/>\n";
    return text;
  }

  const Chart& chart_;
  double min_ = 0, max_ = 0, last_step_ = 0;
  bool logarithmic_ = false;
};

}  // namespace

std::string draw(const Chart& chart) { return Drawing(chart).svg(); }

std::string figure(const Chart& chart) {
  if (std::ranges::all_of(chart.lines, [](const Series* series) { return series->empty(); })) return "";
  std::string names;
  for (std::size_t i = 0; i < chart.names.size(); ++i)
    names += element("span", chart.names[i], ("key" + std::to_string(i + 1)).c_str()) + " ";
  return "<figure>" + element("h3", chart.title) + names + draw(chart) + "</figure>\n";
}

std::string sparkline(const Series& series, double min, double max) {
  constexpr double kSparkWidth = 240, kSparkHeight = 24;
  const auto& points = series.points();
  const double first = points.empty() ? 0 : points.front().step,
               steps = points.empty() ? 1 : std::max(points.back().step - first, 1.0);
  std::string places;
  for (const Series::Point& point : points)
    places += format_fixed(kSparkWidth * (point.step - first) / steps, 0) + "," +
              format_fixed(kSparkHeight * (max - point.mean) / (max - min), 0) + " ";
  return "<svg viewBox=\"0 -1 240 26\" class=\"spark\"><polyline points=\"" + places + "\" class=\"line1\"/></svg>";
}

std::string stacked_bar(const std::string& title, const std::vector<BarPart>& parts) {
  constexpr double kBarWidth = 600;
  std::string bar = "<svg viewBox=\"0 0 600 24\" role=\"img\">" + element("title", title) + "\n";
  double left = 0;
  for (const BarPart& part : parts) {
    const double width = kBarWidth * part.share;
    bar += "<rect x=\"" + px(left) + "\" y=\"0\" width=\"" + px(width) + "\" height=\"24\" class=\"" + part.colour +
           "\"/>\n";
    left += width;
  }
  return bar + "</svg>\n";
}

std::string swatch(const char* colour) {
  return std::string("<svg viewBox=\"0 0 10 10\" class=\"swatch\"><rect width=\"10\" height=\"10\" class=\"") + colour +
         "\"/></svg> ";
}

}  // namespace tg::ctl
