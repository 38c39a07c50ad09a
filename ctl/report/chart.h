// A line chart as SVG, for a page whose style sheet has the colours (classes line1, line2, band, grid, axis, mark).
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/report/series.h"

namespace tg::ctl {

struct Chart {
  std::string title;
  std::vector<const Series*> lines;       // the first one with a band from its least to its most value
  std::vector<std::string> names = {};    // of the lines, where there is more than one
  std::vector<std::uint64_t> marks = {};  // steps with a dashed line: another list of members
  bool logarithmic = false;               // the upright axis, if all values are above 0
  bool percent = false;                   // values are shares
};

std::string draw(const Chart& chart);

}  // namespace tg::ctl
