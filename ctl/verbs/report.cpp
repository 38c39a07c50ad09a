#include <chrono>
#include <filesystem>
#include <optional>

#include "ctl/fetch/part_file.h"
#include "ctl/report/misclassifications.h"
#include "ctl/report/report_data.h"
#include "ctl/report/run_source.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/log.h"
#include "kernels/base/regular_file.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxViewsBytes = std::uint64_t{64} << 20;
constexpr const char *kRecordFile = "run.json", *kViewsFile = "views.jsonl", *kMetricsFile = "metrics.jsonl";
constexpr std::uint64_t kMsPerSecond = 1000;

Result<ReportData> ask_report(RunSource& source, const schema::RunStatus& run) {
  const Result<std::string> record = source.text(kRecordFile, schema::kMaxRecordBytes);
  if (!record) return record.error();
  const Result<std::string> views = source.text(kViewsFile, kMaxViewsBytes);
  if (!views) return views.error();
  if (const Status read = source.read_metrics(); !read) return read.error();
  Result<ReportData> data = report_data(*record, *views);
  if (!data) return Error{data.error().kind, source.node() + "'s run.json is damaged: " + data.error().message};
  data->run = run;
  data->node = source.node();
  data->curves = source.curves();
  return data;
}

// Has the asked node evaluate the run's model again, for the page.
Result<std::string> ask_misclassifications(Client& client, const schema::RunStatus& run) {
  if (!schema::is_authoritative(run.state))
    return Error{ErrorKind::kRefused, "run " + run.id + " is " + to_word(run.state) +
                                          ": --mistakes needs a COMPLETED or STOPPED run; leave it out, or try again "
                                          "then"};
  ProgressPrinter printer;
  const ProgressPoll activity{schema::StatusRequest{kNoRun, true}, [&printer](const schema::ReplyBody& reply) {
                                printer.print_activity(reply, "evaluation");
                                return false;  // the node has its own deadline for it
                              }};
  const Result<schema::Misclassifications> found = Client::as<schema::Misclassifications>(client.ask_with_probes(
      schema::MisclassificationsRequest{run.id}, schema::kMisclassificationsMs + schema::kControlReplyMs, &activity));
  printer.end();
  return found ? misclassification_section(*found, run) : found.error();
}

Result<std::string> text_of(const fs::path& path, std::uint64_t most_bytes) {
  Result<std::string> text = RegularFile::text(path.string(), most_bytes);
  if (!text)
    return Error{ErrorKind::kUsage, path.string() + " cannot be read: " + text.error().message +
                                        "; give a run, or a folder that tgctl fetch wrote"};
  return text;
}

int report_folder(const Command& command) {
  if (command.mistakes)
    return fail({ErrorKind::kUsage,
                 "--mistakes needs a node with the run and its data: give the run's id instead of "
                 "the folder " +
                     command.operand});
  const Result<ReportData> data = read_report(command.operand);
  if (!data) return fail(data.error());
  if (const Status written = write_file(command.output, report_page(*data)); !written) return fail(written.error());
  print(command.output + "\n");
  return kOk;
}

}  // namespace

Result<ReportData> read_report(const std::string& folder) {
  const Result<std::string> record = text_of(fs::path(folder) / kRecordFile, schema::kMaxRecordBytes);
  if (!record) return record.error();
  std::error_code code;
  const fs::path views_path = fs::path(folder) / kViewsFile;
  const Result<std::string> views = fs::exists(views_path, code) ? text_of(views_path, kMaxViewsBytes) : std::string();
  if (!views) return views.error();
  Result<ReportData> data = report_data(*record, *views);
  if (!data) return Error{data.error().kind, folder + "/" + kRecordFile + " is damaged: " + data.error().message};
  const std::string metrics = (fs::path(folder) / kMetricsFile).string();
  Result<Curves> curves = read_curves({metrics, metrics});
  if (!curves) return curves.error();
  data->curves = *std::move(curves);
  data->made_ms = unix_time_ms();
  return data;
}

int report(const Command& command) {
  if (const Status free = check_writable(command.output, command.force); !free) return fail(free.error());
  std::error_code code;
  if (fs::is_directory(command.operand, code)) return report_folder(command);
  Result<Client> client = Client::connect(command.address, command.key_file);
  if (!client) return fail(client.error());
  std::optional<RunSource> source;
  std::string name = command.operand;
  while (true) {
    const Result<schema::MeshStatus> mesh = ask_mesh(*client, name, schema::Pick::kNewest);
    if (!mesh) return fail(mesh.error());
    const schema::RunStatus& run = mesh->runs.front();
    name = run.id;
    if (!source) source.emplace(*client, run.id, RunSource::choose_node(mesh->node, run));
    Result<ReportData> data = ask_report(*source, run);
    if (!data) return fail(data.error());
    if (command.mistakes) {
      Result<std::string> misclassifications = ask_misclassifications(*client, run);
      if (!misclassifications) return fail(misclassifications.error());
      data->misclassifications = *std::move(misclassifications);
    }
    const bool again = command.every_ms > 0 && !schema::has_ended(run.state);
    data->made_ms = unix_time_ms();
    data->refresh_seconds = again ? std::max<std::uint64_t>(command.every_ms / kMsPerSecond, 1) : 0;
    if (const Status written = write_file(command.output, report_page(*data)); !written) return fail(written.error());
    if (!again) break;
    if (!sleep_unless_interrupted(static_cast<int>(command.every_ms))) return kInterrupted;
  }
  print(command.output + "\n");
  return kOk;
}

}  // namespace tg::ctl
