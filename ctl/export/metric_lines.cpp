#include "ctl/export/metric_lines.h"

#include <fstream>
#include <string_view>

#include "kernels/base/regular_file.h"
#include "schema/described/json_form.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;

constexpr std::size_t kMaxLineBytes = 64 * 1024;  // with 127 members a line has some 6,000

Metric metric_of(std::string name, const Json& value) {
  Metric metric{std::move(name), "", std::nullopt};
  if (value.is_string()) {
    metric.text = value.get<std::string>();
  } else if (!value.is_null()) {
    metric.text = value.dump();
  }
  if (value.is_number()) metric.number = value.get<double>();
  return metric;
}

}  // namespace

std::optional<MetricLine> parse_metric_line(std::string_view text) {
  const Json row = Json::parse(text, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  MetricLine line;
  const auto step = row.find("step"), time = row.find("time");
  if (step == row.end() || !step->is_number_unsigned()) return std::nullopt;
  line.step = step->get<std::uint64_t>();
  if (time != row.end()) {
    const auto unix_ms = time->is_string() ? schema::from_utc(time->get<std::string>()) : std::nullopt;
    if (!unix_ms) return std::nullopt;
    line.time_ms = *unix_ms;
  }
  for (const auto& [key, value] : row.items()) {
    if (!value.is_object()) {
      line.metrics.push_back(metric_of(key, value));
      continue;
    }
    for (const auto& [inner, one] : value.items()) line.metrics.push_back(metric_of(key + "/" + inner, one));
  }
  return line;
}

Status for_each_line(const MetricsFile& file, const std::function<Status(const MetricLine&)>& take) {
  if (const Result<RegularFile> regular = RegularFile::open(file.path); !regular)
    return Error{ErrorKind::kIo, file.name + " cannot be read: " + regular.error().message};
  std::ifstream stream(file.path, std::ios::binary);
  std::string text(kMaxLineBytes, '\0');
  for (std::uint64_t number = 1; stream.peek() != std::ifstream::traits_type::eof(); ++number) {
    const bool read = static_cast<bool>(stream.getline(text.data(), static_cast<std::streamsize>(text.size())));
    const std::optional<MetricLine> line = read ? parse_metric_line(text.c_str()) : std::nullopt;
    if (!line)
      return Error{ErrorKind::kCorrupt, file.name + ":" + std::to_string(number) +
                                            ": not a JSON object with a step number; fetch the run again"};
    if (Status taken = take(*line); !taken) return taken;
  }
  if (stream.bad() || !stream.is_open()) return Error{ErrorKind::kIo, file.name + " cannot be read"};
  return {};
}

}  // namespace tg::ctl
