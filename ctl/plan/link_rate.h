// "1Gbps", "940Mbit", "2.5 Gbit/s": what people call a link's rate, as Mbit/s. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::ctl {

// Above 0, at most schema::kMaxLineMbps. A bare number is refused: of which unit would it be?
Result<double> parse_link_mbps(std::string_view text);
std::string format_link(double mbps);  // "1 Gbit/s", "941 Mbit/s"

}  // namespace tg::ctl
