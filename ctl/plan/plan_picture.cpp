#include "ctl/plan/plan_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ctl/format/table.h"
#include "ctl/plan/link_rate.h"
#include "ctl/report/markup.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

using schema::ForecastReply;
using schema::ForecastRow;
using schema::Outcome;

// The frame of the curves, in pixels.
constexpr double kLeft = 80, kRight = 560, kTop = 50, kBottom = 340;
constexpr int kWidth = 720, kHeight = 400;

struct Curve {
  const char* name;
  const char* colour;
  Outcome ForecastRow::*outcome;
};
constexpr std::array<Curve, 3> kCurves = {{{"ternary sharded", "#1b6ca8", &ForecastRow::sharded},
                                           {"ternary direct", "#2e9c5a", &ForecastRow::direct},
                                           {"float32 ring", "#b03a2e", &ForecastRow::ring}}};

// 0 where there is none. What no mesh does is none: the upright axis has a line for each power of ten, and a node that
// lies may say a step of no time.
double value_of(const Outcome& outcome, bool replay) {
  constexpr double kLeast = 1e-9, kMost = schema::kMaxReal;
  const double value = !replay ? outcome.samples_per_second : outcome.step > 0 ? 1 / outcome.step : 0;
  return value >= kLeast && value <= kMost ? value : 0;
}

struct Axes {
  double most_nodes = 1;
  double low = 0, high = 1;  // decades of the upright axis
  double x(std::uint64_t nodes) const {
    return kLeft + (kRight - kLeft) * std::log2(static_cast<double>(nodes)) / std::max(std::log2(most_nodes), 1.0);
  }
  double y(double value) const { return kBottom - (kBottom - kTop) * (std::log10(value) - low) / (high - low); }
};

Axes axes_of(const ForecastReply& reply, bool replay) {
  Axes axes;
  double least = 0, most = 0;
  for (const ForecastRow& row : reply.table) {
    axes.most_nodes = std::max(axes.most_nodes, static_cast<double>(row.nodes));
    for (const Curve& curve : kCurves) {
      const double value = value_of(row.*curve.outcome, replay);
      if (value <= 0) continue;
      least = least == 0 ? value : std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (most <= 0) return axes;
  axes.low = std::floor(std::log10(least));
  axes.high = std::max(std::ceil(std::log10(most)), axes.low + 1);
  return axes;
}

std::string grid(const ForecastReply& reply, const Axes& axes) {
  std::string svg;
  for (double decade = axes.low; decade <= axes.high; ++decade) {
    const double y = axes.y(std::pow(10, decade));
    svg += svg_line(kLeft, y, kRight, y, "stroke=\"#ddd\"");
    svg += svg_text(kLeft - 8, y + 4, "end",
                    format_fixed(std::pow(10, decade), decade < 0 ? static_cast<int>(-decade) : 0));
  }
  for (const ForecastRow& row : reply.table) {
    svg += svg_line(axes.x(row.nodes), kBottom, axes.x(row.nodes), kBottom + 5, "stroke=\"#444\"");
    svg += svg_text(axes.x(row.nodes), kBottom + 20, "middle", std::to_string(row.nodes));
  }
  svg += svg_line(kLeft, kBottom, kRight, kBottom, "stroke=\"#444\"") +
         svg_line(kLeft, kTop, kLeft, kBottom, "stroke=\"#444\"");
  const double allowed = axes.x(schema::kMaxMembers);
  if (axes.most_nodes > static_cast<double>(schema::kMaxMembers)) {
    svg += svg_line(allowed, kTop, allowed, kBottom, "stroke=\"#888\" stroke-dasharray=\"3 4\"");
    svg += svg_text(allowed + 4, kTop + 12, "start", "beyond a run", " fill=\"#888\"");
  }
  return svg;
}

// Points that have a value; the last one's height is where the name goes.
std::string curve_of(const ForecastReply& reply, const Axes& axes, const Curve& curve, bool replay, double& end) {
  std::string points, marks;
  for (const ForecastRow& row : reply.table) {
    const double value = value_of(row.*curve.outcome, replay);
    if (value <= 0) continue;
    end = axes.y(value);
    points += px(axes.x(row.nodes)) + "," + px(end) + " ";
    marks +=
        "<circle cx=\"" + px(axes.x(row.nodes)) + "\" cy=\"" + px(end) + "\" r=\"3\" fill=\"" + curve.colour + "\"/>\n";
  }
  return "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + curve.colour + "\" stroke-width=\"2\"/>\n" +
         marks;
}

}  // namespace

std::string draw_forecast(const ForecastReply& reply) {
  const bool replay = reply.compute == schema::Compute::kReplay;
  const Axes axes = axes_of(reply, replay);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) + "\" height=\"" +
                    std::to_string(kHeight) + "\" font-family=\"sans-serif\" font-size=\"12\">\n";
  svg += "<rect width=\"" + std::to_string(kWidth) + "\" height=\"" + std::to_string(kHeight) + "\" fill=\"white\"/>\n";
  svg +=
      svg_text(kLeft, 22, "start",
               reply.model + ", " + format_mbps(reply.payload_mbps) + " of payload, " + format_fixed(reply.cores, 2) +
                   " cores a node: predicted " + (replay ? "steps/s" : "samples/s") + " over the number of nodes",
               " font-size=\"14\"");
  svg += grid(reply, axes);
  double lowest_name = kTop;  // names that would touch are moved apart
  std::vector<std::pair<double, const Curve*>> names;
  for (const Curve& curve : kCurves) {
    double end = kBottom;
    svg += curve_of(reply, axes, curve, replay, end);
    names.emplace_back(end, &curve);
  }
  std::sort(names.begin(), names.end());
  for (const auto& [end, curve] : names) {
    const double y = std::max(end, lowest_name);
    lowest_name = y + 15;
    svg += svg_text(kRight + 10, y + 4, "start", curve->name, (std::string(" fill=\"") + curve->colour + "\"").c_str());
  }
  svg += svg_text((kLeft + kRight) / 2, kBottom + 42, "middle",
                  replay ? "nodes (gradients replayed, nothing computed)" : "nodes");
  return svg + "</svg>\n";
}

}  // namespace tg::ctl
