#include "ctl/report/markup.h"

#include <cstdint>

#include "ctl/terminal/visible.h"

namespace tg::ctl {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string element(const char* name, std::string_view text, const char* css_class) {
  const std::string attribute = *css_class == '\0' ? "" : std::string(" class=\"") + css_class + "\"";
  return "<" + std::string(name) + attribute + ">" + escaped(text) + "</" + name + ">";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t kGroup = 3, kDigitsOfGroup = 4;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += kGroup) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < kGroup; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < kDigitsOfGroup; ++j)
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

std::string px(double value) { return format_fixed(value, 1); }

std::string svg_line(double x1, double y1, double x2, double y2, const char* more) {
  return "<line x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) + "\" " + more +
         "/>\n";
}

std::string svg_text(double x, double y, const char* anchor, const std::string& text, const char* more) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" + escaped(text) +
         "</text>\n";
}

std::string row(const std::vector<std::string>& cells, const char* cell) {
  std::string text = "<tr>";
  for (const std::string& one : cells) text += element(cell, one);
  return text + "</tr>\n";
}

std::string table(const std::vector<std::string>& heading, const Rows& rows) {
  std::string text = "<div class=\"scroll\"><table>\n" + (heading.empty() ? std::string() : row(heading, "th"));
  for (const auto& cells : rows) text += row(cells);
  return text + "</table></div>\n";
}

}  // namespace tg::ctl
