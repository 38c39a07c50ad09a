#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "ctl/export/csv.h"
#include "ctl/export/event_file.h"
#include "ctl/fetch/output_folder.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = "metrics.jsonl";
constexpr const char* kTable = "metrics.csv";
// TensorBoard looks for this prefix. The number after it is the first line's time, so that each export of a run has the
// same name.
constexpr std::string_view kEventsBegin = "events.out.tfevents.", kEventsEnd = ".tgd";

// The files of earlier exports in this format: TensorBoard would merge two of them into one run.
std::vector<fs::path> exported_before(const std::string& folder, bool csv) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (csv ? name == kTable : name.starts_with(kEventsBegin) && name.ends_with(kEventsEnd))
      found.push_back(at->path());
  }
  return found;
}

Status write(const MetricsFile& from, bool csv, PartFile& file) {
  if (const Status status = file.open(); !status) return status;
  if (const Status status = csv ? write_csv(from, file) : write_events(from, file); !status) return status;
  return file.close();
}

Result<std::string> write_export(const MetricsFile& from, const Command& command) {
  const bool csv = command.format == "csv";
  std::optional<std::int64_t> begin_ms;
  if (Status read = for_each_line(from,
                                  [&](const MetricLine& line) -> Status {
                                    if (!begin_ms) begin_ms = line.time_ms;
                                    return {};
                                  });
      !read)
    return read.error();
  if (!begin_ms) return Error{ErrorKind::kFailed, from.name + " is empty: the run made no steps"};
  if (*begin_ms == 0 && !csv)
    warn(from.name + " has no times, because an older tgd wrote it; TensorBoard shows steps only");
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%010lld", static_cast<long long>(*begin_ms / 1000));
  const fs::path folder = command.output;
  PartFile file((folder / (csv ? kTable : std::string(kEventsBegin) + seconds + std::string(kEventsEnd))).string());
  if (const Status status = write(from, csv, file); !status) return status.error();
  for (const fs::path& old : exported_before(command.output, csv)) {
    std::error_code code;
    if (old != file.path() && !fs::remove(old, code))
      return Error{ErrorKind::kIo, old.string() + " cannot be removed: " + code.message()};
  }
  if (const Status status = file.keep(); !status) return status.error();
  if (const Status status = sync_folder(command.output); !status) return status.error();
  return file.path();
}

}  // namespace

int export_metrics(const Command& command) {
  const fs::path folder = command.operand;
  std::error_code code;
  const bool here = fs::is_directory(folder, code);
  const std::string path = (folder / kSource).string();
  if (here && !fs::exists(path, code))
    return fail({ErrorKind::kUsage, path + " does not exist; give a run, or a folder that tgctl fetch wrote"});
  if (const Status status = prepare_folder(command.output); !status) return fail(status.error());
  const std::vector<fs::path> old = exported_before(command.output, command.format == "csv");
  if (!old.empty() && !command.force)
    return fail({ErrorKind::kRefused, old[0].string() + " already exists; --force replaces it"});

  std::optional<PartFile> fetched;
  MetricsFile from{path, path};
  if (!here) {
    Result<Client> client = Client::connect(command.address, command.key_file);
    if (!client) return fail(client.error());
    Result<PartFile> metrics = fetch_metrics(*client, command.operand, command.output);
    if (!metrics) return fail(metrics.error());
    fetched.emplace(*std::move(metrics));
    from = {fetched->part_path(), std::string(kSource) + " of run " + command.operand};
  }
  const Result<std::string> written = write_export(from, command);
  if (!written) return fail(written.error());
  print(*written + "\n");
  return kOk;
}

}  // namespace tg::ctl
