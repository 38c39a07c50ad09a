#include "ctl/export/csv.h"

#include <map>

namespace tg::ctl {
namespace {

constexpr std::size_t kMaxColumns = 1000;

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) row += (i == 0 ? "" : ",") + cell(cells[i]);
  return row + "\n";
}

}  // namespace

Status write_csv(const MetricsFile& from, PartFile& to) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> columns;
  if (Status read = for_each_line(from,
                                  [&](const MetricLine& line) -> Status {
                                    for (const Metric& metric : line.metrics)
                                      if (columns.emplace(metric.name, names.size()).second)
                                        names.push_back(metric.name);
                                    if (names.size() <= kMaxColumns) return {};
                                    return Error{ErrorKind::kCorrupt, from.name + " has more than " +
                                                                          std::to_string(kMaxColumns) +
                                                                          " metrics; that is not a run's file"};
                                  });
      !read)
    return read;
  std::string rows = row_of(names);
  const auto write = [&]() -> Status {
    Status written = to.write(rows);
    rows.clear();
    return written;
  };
  if (Status read = for_each_line(from,
                                  [&](const MetricLine& line) -> Status {
                                    std::vector<std::string> cells(names.size());
                                    for (const Metric& metric : line.metrics)
                                      cells[columns.at(metric.name)] = metric.text;
                                    rows += row_of(cells);
                                    return rows.size() < kWriteBytes ? Status() : write();
                                  });
      !read)
    return read;
  return write();
}

}  // namespace tg::ctl
