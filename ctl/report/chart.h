// Draws line charts and bars as SVG. The page's style sheet has the colours (classes line1 to line4, band, grid, axis,
// mark, bar0 to bar5). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/report/series.h"

namespace tg::ctl {

struct Chart {
  std::string title;
  std::vector<const Series*> lines;
  std::vector<std::string> names = {};    // the lines' names, if there is more than one
  std::vector<std::uint64_t> marks = {};  // steps with a dashed line: view changes
  bool band = true;                       // around the first line, from minimum to maximum
  bool logarithmic = false;               // vertical axis, if all values are above 0
  bool percent = false;                   // values are shares
};

std::string draw(const Chart& chart);
// The chart with its title and its lines' names; "" without values.
std::string figure(const Chart& chart);

// A small curve without axes, for values from min to max.
std::string sparkline(const Series& series, double min, double max);

struct BarPart {
  const char* colour;  // a class of the style sheet: bar0 to bar5
  double share;        // its part of the bar
};
std::string stacked_bar(const std::string& title, const std::vector<BarPart>& parts);
std::string swatch(const char* colour);  // for a legend

}  // namespace tg::ctl
