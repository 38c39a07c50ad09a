// `plan --svg`: throughput over the number of nodes, as the paper's Figure 5 shows it: direct, sharded, float32 ring.
// Samples per second, or steps per second where gradients are replayed; both axes logarithmic. SVG 1.1 text. Pure.
#pragma once

#include <string>

#include "schema/control/forecast.h"

namespace tg::ctl {

std::string draw_forecast(const schema::ForecastReply& reply);

}  // namespace tg::ctl
