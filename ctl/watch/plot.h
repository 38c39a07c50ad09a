// A curve in characters: of braille, two by four points each, or of asterisks where there is no UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/report/series.h"

namespace tg::ctl {

struct PlotArea {
  std::size_t columns = 0, rows = 0;  // with the scale at the left
  bool utf8 = true;
  bool percent = false;  // values are shares
};

// area.rows lines, none wider than area.columns; empty ones where there is no value.
std::vector<std::string> plot(const Series& series, const PlotArea& area);

}  // namespace tg::ctl
