// The page with the differences between runs, and with their curves in common charts. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/report/curves.h"
#include "schema/control/status.h"

namespace tg::ctl {

inline constexpr std::size_t kMaxCurvesOfAChart = 4;  // there is a colour for each

// curves[i] are the curves of runs[i]; at most kMaxCurvesOfAChart.
std::string comparison_page(const std::vector<schema::RunStatus>& runs, const std::vector<Curves>& curves);

}  // namespace tg::ctl
