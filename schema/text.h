// The texts that messages may carry: names, run ids, sentences. The option tables and both decoders share it.
// Pure; any thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "kernels/base/joined.h"

namespace tg::schema {

using tg::joined;

// [a-z0-9][a-z0-9.-]*, 1 to kMaxNameBytes.
bool is_node_name(std::string_view text);
// [A-Za-z0-9][A-Za-z0-9._-]*, 1 to kMaxRunIdBytes: also a folder's name.
bool is_run_id(std::string_view text);
// The id under which a lineage of the run with this key (hexadecimal) is set aside, and whether an id is such a one.
std::string set_aside_id(const std::string& run, std::string_view key);
bool is_set_aside(const std::string& id, const std::string& run);
std::string run_id_rule();  // the rule of is_run_id in words
// An id for a run that was given none, such as "lenet-20171204-0900-3f2a": ids sort by time, and a prefix is enough to
// type. tgctl draws it, or the node if a request has none.
std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw);
// True without control characters (one byte, or C1), which would let a peer's text control a terminal.
bool is_printable(std::string_view text);
// The same, but line breaks and tabs are allowed.
bool is_printable_lines(std::string_view text);
// Control characters become spaces; the text is cut at max_bytes, never inside a UTF-8 sequence.
std::string clip_text(std::string_view text, std::size_t max_bytes);
// True for a numeric address, not for a name; is_ipv6 accepts it with or without brackets.
bool is_ipv4(std::string_view text);
bool is_ipv6(std::string_view text);
// Why an IPv6 address of fe80::/10, with or without a device and brackets, cannot be used; "" for all others.
std::string link_local_problem(std::string_view host);
// "10.0.0.1:7700", "[fd00::1]:7700"; the host may be an IPv6 address with or without brackets.
std::string host_and_port(const std::string& host, std::uint16_t port);
// The columns that a text takes in a terminal, counted as its code points.
std::size_t text_width(std::string_view text);
// Breaks a text at spaces into lines of at most `columns`; a longer word is cut. An empty text gives one empty line.
std::vector<std::string> wrap_text(std::string_view text, std::size_t columns);
// The number that the whole text is, if it is one.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && stop == text.data() + text.size() ? std::optional(number) : std::nullopt;
}
// A duration: "42s", "3m05s", "2h10m", "4d"; "-" if it is negative or not finite.
std::string format_span(double seconds);
// FNV-1a, 64 bits: compares texts of nodes that trust each other; it is not a cryptographic hash.
std::uint64_t hash_text(std::string_view text);

}  // namespace tg::schema
