#include "daemon/store/view_interval.h"

#include <algorithm>
#include <exception>
#include <string_view>

#include "daemon/store/line_file.h"
#include "engine/storage/safetensors.h"
#include "kernels/base/regular_file.h"
#include "schema/described/json_form.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

using schema::OrderedJson;

Result<std::string> content_of(const std::string& path) {
  Result<std::string> content = RegularFile::text(path, kMaxViewsBytes, RegularFile::Links::kRefuse);
  if (content) return content;
  if (content.error().kind == ErrorKind::kNotFound) return std::string();
  return Error{ErrorKind::kIo, "cannot read " + path + ": " + content.error().message};
}

// Splits off the whole lines.
std::vector<std::string> lines_of(std::string_view content) {
  std::vector<std::string> lines;
  for (std::size_t end = content.find('\n'); end != std::string_view::npos; end = content.find('\n')) {
    lines.emplace_back(content.substr(0, end));
    content.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

std::string interval_to_line(const ViewInterval& interval) {
  return schema::to_json(interval, schema::JsonView::kKept).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<ViewInterval> interval_from_line(const std::string& line) {
  try {
    OrderedJson json = OrderedJson::parse(line);
    if (!json.is_object()) return Error{ErrorKind::kCorrupt, "not a JSON object"};
    if (!json.contains("settings")) json["settings"] = OrderedJson::object();  // an older tgd wrote it
    std::string problem;
    ViewInterval interval;
    schema::JsonReader reader(json, problem, schema::JsonReader::Missing::kError);
    fields(interval, reader);
    for (const std::string& name : interval.members)
      if (!schema::is_node_name(name)) reader.set_problem("members", "a list of names");
    for (const auto& [name, build] : interval.builds)
      if (!schema::is_node_name(name)) reader.set_problem("builds", "an object of builds");
    if (!problem.empty()) return Error{ErrorKind::kCorrupt, problem};
    return interval;
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, error.what()};
  }
}

std::vector<ViewInterval> intervals_in(const std::string& path) {
  std::vector<ViewInterval> intervals;
  const Result<std::string> content = content_of(path);
  if (!content) return intervals;
  for (const std::string& line : lines_of(*content))
    if (Result<ViewInterval> interval = interval_from_line(line); interval) intervals.push_back(*std::move(interval));
  return intervals;
}

std::optional<ViewInterval> first_view_in(const std::string& path, std::uint32_t lineage) {
  const std::vector<ViewInterval> all = intervals_in(path);
  const auto first =
      std::ranges::find_if(all, [&](const ViewInterval& one) { return one.lineage == lineage && one.view == 1; });
  return first == all.end() ? std::nullopt : std::optional(*first);
}

std::optional<schema::StateId> repeated_start(const std::vector<ViewInterval>& past, std::size_t times) {
  std::vector<const ViewInterval*> firsts;  // the first interval of each lineage
  for (const ViewInterval& one : past)
    if (firsts.empty() || firsts.back()->lineage != one.lineage) firsts.push_back(&one);
  if (firsts.size() <= times) return std::nullopt;
  const schema::StateId& from = firsts.back()->from;
  const bool same = std::all_of(firsts.end() - static_cast<std::ptrdiff_t>(times), firsts.end(),
                                [&](const ViewInterval* one) { return one->from.same_bits(from); });
  return same ? std::optional(from) : std::nullopt;
}

Result<std::uint64_t> add_interval(const std::string& path, const ViewInterval& interval) {
  const Result<std::string> content = content_of(path);
  if (!content) return content.error();
  std::vector<std::string> lines = lines_of(*content);
  const std::string line = interval_to_line(interval);
  const Result<ViewInterval> last =
      lines.empty() ? Result<ViewInterval>(ViewInterval{}) : interval_from_line(lines.back());
  const bool there = !lines.empty() && last && last->same_as(interval);
  if (there && lines.back() == line && content->ends_with('\n')) return lines.size();
  if (!there) {
    LineFile file(path, LineFile::Mode::kAppend);
    file.add(line);
    if (Status closed = file.close(); !closed) return closed.error();
    return lines.size() + 1;
  }
  lines.back() = line;
  std::string whole;
  for (const std::string& one : lines) whole += one + "\n";
  if (Status written = engine::write_file_atomically(path, whole); !written) return written.error();
  return lines.size();
}

}  // namespace tg::daemon
