// Draws a curve in characters: braille with two by four dots each, or asterisks without UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/report/series.h"

namespace tg::ctl {

struct PlotArea {
  std::size_t columns = 0, rows = 0;  // including the scale at the left
  bool utf8 = true;
  bool percent = false;  // values are shares
};

// Returns area.rows lines, none wider than area.columns; they are empty if there is no value.
std::vector<std::string> plot(const Series& series, const PlotArea& area);

}  // namespace tg::ctl
