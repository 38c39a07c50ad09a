#include "ctl/plan/link_rate.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "ctl/format/table.h"
#include "schema/limits.h"
#include "schema/options/options.h"

namespace tg::ctl {
namespace {

// Mbit/s of "kbps", "Mbit" or "gbit/s"; 0 if it is none of them.
double unit_mbps(const std::string& unit) {
  const std::string_view rest = std::string_view(unit).substr(unit.empty() ? 0 : 1);
  if (rest != "bps" && rest != "bit" && rest != "bit/s") return 0;
  return unit[0] == 'k' ? 1e-3 : unit[0] == 'm' ? 1 : unit[0] == 'g' ? 1e3 : unit[0] == 't' ? 1e6 : 0;
}

}  // namespace

Result<double> parse_link_mbps(std::string_view text) {
  const Error wrong = schema::bad_value(text, "a link's rate such as 1Gbps, 940Mbps or 2.5Gbit/s");
  double number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !std::isfinite(number)) return wrong;
  std::string unit(stop, text.data() + text.size());
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  const double mbps = number * unit_mbps(unit);
  if (mbps <= 0 || mbps > schema::kMaxLineMbps) return wrong;
  return mbps;
}

std::string format_link(double mbps) {
  if (mbps < 1000) return format_mbps(mbps);
  const double gbps = mbps / 1000;
  return format_fixed(gbps, gbps == std::floor(gbps) ? 0 : 2) + " Gbit/s";
}

}  // namespace tg::ctl
