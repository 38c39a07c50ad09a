// The page that shows what differs between runs, and their curves over each other. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/report/curves.h"
#include "schema/control/status.h"

namespace tg::ctl {

inline constexpr std::size_t kMaxCurvesOfAChart = 4;  // for each a colour

// curves[i] are of runs[i]; at most kMaxCurvesOfAChart.
std::string comparison_page(const std::vector<schema::RunStatus>& runs, const std::vector<Curves>& curves);

}  // namespace tg::ctl
