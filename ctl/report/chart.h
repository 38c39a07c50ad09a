// Line charts and bars as SVG, for a page whose style sheet has the colours (classes line1 to line4, band, grid, axis,
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
  std::vector<std::string> names = {};    // of the lines, where there is more than one
  std::vector<std::uint64_t> marks = {};  // steps with a dashed line: another list of members
  bool band = true;                       // of the first line, from its least to its most value
  bool logarithmic = false;               // the upright axis, if all values are above 0
  bool percent = false;                   // values are shares
};

std::string draw(const Chart& chart);
// With its title and the names of its lines; nothing of no values.
std::string figure(const Chart& chart);

// A small curve without axes, of values from least to most.
std::string sparkline(const Series& series, double least, double most);

struct BarPart {
  const char* colour;  // a class of the style sheet: bar0 to bar5
  double share;        // of the whole bar
};
std::string stacked_bar(const std::string& title, const std::vector<BarPart>& parts);
std::string swatch(const char* colour);  // for a legend

}  // namespace tg::ctl
