#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "ctl/fetch/part_file.h"
#include "ctl/report/mistakes.h"
#include "ctl/report/report_data.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostViewsBytes = std::uint64_t{64} << 20, kMostMetricsBytes = std::uint64_t{1} << 34;
constexpr std::size_t kMostLineBytes = 64 * 1024;
constexpr const char *kRecordFile = "run.json", *kViewsFile = "views.jsonl", *kMetricsFile = "metrics.jsonl";
constexpr std::uint64_t kMsPerSecond = 1000;

// One member's files of a run that may go on.
class Source {
 public:
  Source(Client& client, std::string run, std::string node)
      : client_(client), run_(std::move(run)), node_(std::move(node)) {}
  const std::string& node() const { return node_; }

  Result<std::string> text(const char* file, std::uint64_t most) {
    std::string text;
    const Status read = read_on(file, 0, most, [&](const std::string& bytes) { text += bytes; });
    if (!read) return read.error();
    return text;
  }

  // Reads what has been added since the last call.
  Status read_metrics() {
    std::optional<Error> problem;
    const Status read = read_on(kMetricsFile, offset_, kMostMetricsBytes, [&](const std::string& bytes) {
      offset_ += bytes.size();
      rest_ += bytes;
      if (const Status taken = take_lines(); !taken && !problem) problem = taken.error();
    });
    if (!read) return read;
    return problem ? Status(*problem) : Status();
  }
  const Curves& curves() const { return curves_; }

 private:
  template <class Take>
  Status read_on(const char* file, std::uint64_t offset, std::uint64_t most, const Take& take) {
    while (true) {
      const Result<schema::SliceReply> slice =
          client_.ask_for<schema::SliceReply>(schema::FetchRequest{run_, node_, file, offset});
      if (!slice) return slice.error();
      if (slice->total_bytes > most)
        return Error{ErrorKind::kRefused,
                     node_ + "'s " + file + " is too large: " + std::to_string(slice->total_bytes) + " bytes"};
      // It was resumed from an earlier step meanwhile.
      if (slice->total_bytes < offset)
        return Error{ErrorKind::kFailed,
                     node_ + "'s " + file + " is shorter than before: the run was resumed; ask again"};
      if (slice->data.empty()) return {};
      take(slice->data);
      offset += slice->data.size();
      if (offset >= slice->total_bytes) return {};
    }
  }

  // The last line may still be written.
  Status take_lines() {
    std::size_t begin = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      const std::optional<MetricLine> line = parse_metric_line(std::string_view(rest_).substr(begin, end - begin));
      begin = end + 1;
      if (!line) return Error{ErrorKind::kCorrupt, node_ + "'s " + kMetricsFile + " is damaged"};
      add_line(*line, curves_);
    }
    rest_.erase(0, begin);
    if (rest_.size() > kMostLineBytes) return Error{ErrorKind::kCorrupt, node_ + "'s " + kMetricsFile + " is damaged"};
    return {};
  }

  Client& client_;
  const std::string run_, node_;
  std::uint64_t offset_ = 0;
  std::string rest_;
  Curves curves_;
};

// The asked node, if it is a member; else the first that is.
std::string node_of(const schema::MeshStatus& mesh) {
  const auto& members = mesh.runs.front().members;
  for (const schema::MemberStatus& member : members)
    if (member.node == mesh.node) return mesh.node;
  return members.empty() ? mesh.node : members.front().node;
}

Result<ReportData> ask_report(Source& source, const schema::RunStatus& run) {
  const Result<std::string> record = source.text(kRecordFile, schema::kMostRecordBytes);
  if (!record) return record.error();
  const Result<std::string> views = source.text(kViewsFile, kMostViewsBytes);
  if (!views) return views.error();
  if (const Status read = source.read_metrics(); !read) return read.error();
  Result<ReportData> data = report_data(*record, *views);
  if (!data) return Error{data.error().kind, source.node() + "'s run.json is damaged: " + data.error().message};
  data->run = run;
  data->node = source.node();
  data->curves = source.curves();
  return data;
}

// What its model takes for what, evaluated anew by the asked node, for the page.
Result<std::string> ask_mistakes(Client& client, const schema::RunStatus& run) {
  if (!schema::is_fact(run.state))
    return Error{ErrorKind::kRefused, "run " + run.id + " is " + to_word(run.state) +
                                          ": --mistakes is for one that is COMPLETED or STOPPED; leave it out, or ask "
                                          "again then"};
  Talk talk;
  const Meanwhile looks{schema::StatusRequest{kNoRun, true},
                        [&talk](const schema::ReplyBody& reply) { talk.looking(reply, "evaluation"); }};
  const Result<schema::Mistakes> found = Client::as<schema::Mistakes>(
      client.ask_patiently(schema::MistakesRequest{run.id}, schema::kMistakesMs + schema::kControlReplyMs, &looks));
  talk.end();
  return found ? mistakes_part(*found, run) : found.error();
}

Result<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{ErrorKind::kUsage,
                 path.string() + " cannot be read; report takes a run, or a folder that tgctl fetch wrote"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int report_folder(const Command& command) {
  if (command.mistakes)
    return fail({ErrorKind::kUsage,
                 "--mistakes asks a node that has the run and its data: give the run's id in place of "
                 "the folder " +
                     command.operand});
  const Result<ReportData> data = read_report(command.operand);
  if (!data) return fail(data.error());
  if (const Status written = write_whole(command.output, report_page(*data)); !written) return fail(written.error());
  print(command.output + "\n");
  return kOk;
}

}  // namespace

Result<ReportData> read_report(const std::string& folder) {
  const Result<std::string> record = text_of(fs::path(folder) / kRecordFile);
  if (!record) return record.error();
  const Result<std::string> views = text_of(fs::path(folder) / kViewsFile);
  Result<ReportData> data = report_data(*record, views ? *views : "");
  if (!data) return Error{data.error().kind, folder + "/" + kRecordFile + " is damaged: " + data.error().message};
  const std::string metrics = (fs::path(folder) / kMetricsFile).string();
  Result<Curves> curves = read_curves({metrics, metrics});
  if (!curves) return curves.error();
  data->curves = *std::move(curves);
  data->made_ms = unix_time_ms();
  return data;
}

int report(const Command& command) {
  std::error_code code;
  if (!command.force && fs::exists(fs::symlink_status(command.output, code)))
    return fail({ErrorKind::kRefused, command.output + " already exists; --force replaces it"});
  if (fs::is_directory(command.operand, code)) return report_folder(command);
  Result<Client> client = Client::connect(command.address, command.key_file);
  if (!client) return fail(client.error());
  std::optional<Source> source;
  std::string name = command.operand;
  while (true) {
    const Result<schema::MeshStatus> mesh = ask_mesh(*client, name, schema::Pick::kNewest);
    if (!mesh) return fail(mesh.error());
    const schema::RunStatus& run = mesh->runs.front();
    name = run.id;
    if (!source) source.emplace(*client, run.id, node_of(*mesh));
    Result<ReportData> data = ask_report(*source, run);
    if (!data) return fail(data.error());
    if (command.mistakes) {
      Result<std::string> mistakes = ask_mistakes(*client, run);
      if (!mistakes) return fail(mistakes.error());
      data->mistakes = *std::move(mistakes);
    }
    const bool again = command.every_ms > 0 && !schema::has_ended(run.state);
    data->made_ms = unix_time_ms();
    data->again_seconds = again ? std::max<std::uint64_t>(command.every_ms / kMsPerSecond, 1) : 0;
    if (const Status written = write_whole(command.output, report_page(*data)); !written) return fail(written.error());
    if (!again) break;
    if (!sleep_unless_interrupted(static_cast<int>(command.every_ms))) return kInterrupted;
  }
  print(command.output + "\n");
  return kOk;
}

}  // namespace tg::ctl
