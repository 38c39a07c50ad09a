#include "schema/text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

namespace tg::schema {
namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alphanumeric(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

// The length in bytes of the control character at text[i], 0 if there is none.
std::size_t control_bytes(std::string_view text, std::size_t i) {
  const auto c = static_cast<unsigned char>(text[i]);
  if (c < 0x20 || c == 0x7f) return 1;
  if (c != 0xc2 || i + 1 >= text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[i + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

}  // namespace

bool is_node_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || !is_lower_or_digit(text[0])) return false;
  for (const char c : text) {
    if (!is_lower_or_digit(c) && c != '.' && c != '-') return false;
  }
  return true;
}

bool is_run_id(std::string_view text) {
  if (text.empty() || text.size() > kMaxRunIdBytes || !is_alphanumeric(text[0])) return false;
  for (const char c : text) {
    if (!is_alphanumeric(c) && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

std::string set_aside_id(const std::string& run, std::string_view key) {
  return run.substr(0, kMaxRunIdBytes - 1 - key.size()) + "-" + std::string(key);
}

bool is_set_aside(const std::string& id, const std::string& run) {
  constexpr std::size_t kKeyDigits = 16;
  return id.size() > kKeyDigits && id == set_aside_id(run, std::string_view(id).substr(id.size() - kKeyDigits));
}

std::string run_id_rule() {
  return "an id has letters, digits, dots, dashes and underscores, begins with a letter or digit, and has at most " +
         std::to_string(kMaxRunIdBytes);
}

std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw) {
  std::string stamp;  // 2017-12-04T09:00:00.000Z -> 20171204-0900
  for (const char c : format_utc(unix_ms).substr(0, 16)) {
    if (c == 'T') stamp += '-';
    if (std::isdigit(static_cast<unsigned char>(c))) stamp += c;
  }
  return model + "-" + stamp + "-" + hex_digest(draw).substr(0, 4);
}

bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (control_bytes(text, i) != 0) return false;
  }
  return true;
}

bool is_printable_lines(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && text[i] != '\t' && control_bytes(text, i) != 0) return false;
  }
  return true;
}

std::string clip_text(std::string_view text, std::size_t max_bytes) {
  std::string clipped;
  clipped.reserve(text.size() < max_bytes ? text.size() : max_bytes);
  for (std::size_t i = 0; i < text.size() && clipped.size() < max_bytes; ++i) {
    const std::size_t control = control_bytes(text, i);
    clipped += control == 0 ? text[i] : ' ';
    if (control == 2) ++i;
  }
  if (clipped.size() < max_bytes) return clipped;
  // A UTF-8 sequence that the cut may have hit is removed as a whole: its continuation bytes, then its first byte.
  std::size_t end = clipped.size();
  while (end > 0 && (static_cast<unsigned char>(clipped[end - 1]) & 0xc0) == 0x80) --end;
  if (end > 0 && static_cast<unsigned char>(clipped[end - 1]) >= 0xc0) clipped.resize(end - 1);
  return clipped;
}

bool is_ipv4(std::string_view text) {
  in_addr address{};
  return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

bool is_ipv6(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

std::string link_local_problem(std::string_view host) {
  std::string digits(host.substr(0, host.find_first_of("%]")));
  if (digits.starts_with('[')) digits.erase(0, 1);
  in6_addr address{};
  if (inet_pton(AF_INET6, digits.c_str(), &address) != 1 || !IN6_IS_ADDR_LINKLOCAL(&address)) return "";
  return std::string(host) +
         " is a link-local address, which each machine reaches by a network device of its own: give another address of "
         "that machine (ip -brief address), or its name";
}

std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::string> wrap_text(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t used = text_width(lines.back());
    if (used > 0 && used + 1 + text_width(word) > columns) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    for (std::size_t width = 0, at = 0; at < word.size(); ++at) {
      const bool begins = (static_cast<unsigned char>(word[at]) & 0xc0) != 0x80;
      if (begins && width++ == columns) {
        lines.emplace_back();
        width = 1;
      }
      lines.back() += word[at];
    }
  }
  return lines;
}

std::string format_span(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const auto total = std::llround(seconds);
  char text[64];
  if (total < 60) {
    std::snprintf(text, sizeof text, "%llds", total);
  } else if (total < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", total / 60, total % 60);
  } else if (total < 48 * 3600) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", total / 3600, total / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldd", total / 86400);
  }
  return text;
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace tg::schema
