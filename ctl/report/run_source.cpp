#include "ctl/report/run_source.h"

#include <algorithm>
#include <optional>

#include "schema/control/control.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kMaxUnfinishedBytes = 64 * 1024;  // for a line that is being written
constexpr const char* kMetricsFile = "metrics.jsonl";

}  // namespace

std::string RunSource::choose_node(const std::string& asked, const schema::RunStatus& run) {
  const bool takes_part = std::ranges::count(run.members, asked, &schema::MemberStatus::node) > 0;
  return takes_part || run.members.empty() ? asked : run.members.front().node;
}

Result<std::string> RunSource::text(const char* file, std::uint64_t max) {
  std::string text;
  const Status read = read_from(file, 0, max, [&](const std::string& bytes) { text += bytes; });
  if (!read) return read.error();
  return text;
}

Status RunSource::read_metrics(std::uint64_t max) {
  std::optional<Error> problem;
  const Status read = read_from(kMetricsFile, offset_, max, [&](const std::string& bytes) {
    offset_ += bytes.size();
    rest_ += bytes;
    if (const Status taken = parse_lines(); !taken && !problem) problem = taken.error();
  });
  if (!read) return read;
  return problem ? Status(*problem) : Status();
}

Status RunSource::read_from(const char* file, std::uint64_t offset, std::uint64_t max,
                            const std::function<void(const std::string&)>& take) {
  while (true) {
    const Result<schema::SliceReply> slice =
        client_.ask_for<schema::SliceReply>(schema::FetchRequest{run_, node_, file, offset});
    if (!slice) return slice.error();
    if (slice->total_bytes > max)
      return Error{ErrorKind::kRefused,
                   node_ + "'s " + file + " is too large: " + std::to_string(slice->total_bytes) + " bytes"};
    // The run was resumed from an earlier step meanwhile.
    if (slice->total_bytes < offset)
      return Error{ErrorKind::kFailed,
                   node_ + "'s " + file + " is shorter than before, because the run was resumed; try again"};
    if (slice->data.empty()) return {};
    take(slice->data);
    offset += slice->data.size();
    if (offset >= slice->total_bytes) return {};
  }
}

// Leaves the last line if it is incomplete: it is still being written.
Status RunSource::parse_lines() {
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    const std::optional<MetricLine> line = parse_metric_line(std::string_view(rest_).substr(begin, end - begin));
    begin = end + 1;
    if (!line) return Error{ErrorKind::kCorrupt, node_ + "'s " + kMetricsFile + " is damaged"};
    add_line(*line, curves_);
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMaxUnfinishedBytes)
    return Error{ErrorKind::kCorrupt, node_ + "'s " + kMetricsFile + " is damaged"};
  return {};
}

}  // namespace tg::ctl
