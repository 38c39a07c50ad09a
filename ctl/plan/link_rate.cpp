#include "ctl/plan/link_rate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "ctl/format/table.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

struct Unit {
  std::string_view name;
  double mbps;
};
constexpr std::array<Unit, 12> kUnits = {{{"kbps", 1e-3},
                                          {"kbit", 1e-3},
                                          {"kbit/s", 1e-3},
                                          {"mbps", 1},
                                          {"mbit", 1},
                                          {"mbit/s", 1},
                                          {"gbps", 1e3},
                                          {"gbit", 1e3},
                                          {"gbit/s", 1e3},
                                          {"tbps", 1e6},
                                          {"tbit", 1e6},
                                          {"tbit/s", 1e6}}};

}  // namespace

Result<double> parse_link_mbps(std::string_view text) {
  const Error wrong{ErrorKind::kUsage, std::string("\"") + schema::clip_text(text, 100) +
                                           "\" is not a link's rate such as 1Gbps, 940Mbps or 2.5Gbit/s"};
  double number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !std::isfinite(number)) return wrong;
  std::string unit(stop, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double mbps = number * known.mbps;
    if (mbps <= 0 || mbps > schema::kMostLineMbps) return wrong;
    return mbps;
  }
  return wrong;
}

std::string format_link(double mbps) {
  if (mbps < 1000) return format_mbps(mbps);
  const double gbps = mbps / 1000;
  return format_fixed(gbps, gbps == std::floor(gbps) ? 0 : 2) + " Gbit/s";
}

}  // namespace tg::ctl
