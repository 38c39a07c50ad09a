// Numbers and tables for people. Pure.
#pragma once

#include <string>
#include <vector>

namespace tg::ctl {

// Columns as wide as their widest cell, two spaces apart, a line per row; the first row is the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// printf's %.*f, "-" for what is not finite.
std::string format_fixed(double value, int digits);
std::string format_mbps(double mbps);                  // "941 Mbit/s", "5.6 Mbit/s"
std::string format_percent(double share, int digits);  // 0.981 -> "98.1 %"
std::string format_seconds(double seconds);            // "950 us", "4.1 ms", "2.50 s"
std::string format_span(double seconds);               // for waits and ages: "42s", "3m05s", "2h10m"
std::string format_bytes(double bytes);                // "1.2 MB", powers of 1000

}  // namespace tg::ctl
