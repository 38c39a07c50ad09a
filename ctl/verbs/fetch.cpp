#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include "ctl/fetch/fetch_source.h"
#include "ctl/fetch/member_record.h"
#include "ctl/fetch/model_json.h"
#include "ctl/fetch/output_folder.h"
#include "ctl/fetch/part_file.h"
#include "ctl/fetch/predict_script.h"
#include "ctl/fetch/received_file.h"
#include "ctl/fetch/slices.h"
#include "ctl/report/report_data.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/hex.h"
#include "kernels/base/log.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMembersEnd{10};
constexpr int kFetchPollMs = 100;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxTraceBytes = std::uint64_t{1} << 28;  // with all its spans, 40 MB
constexpr const char* kRecordFile = "run.json";
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kViewsFile = "views.jsonl";
constexpr const char* kMembersFile = "members.json";
constexpr const char* kTraceFile = "trace.json";
constexpr const char* kModelFiles[] = {"model.safetensors", "model-raw.safetensors"};  // the same on all members
constexpr const char* kDescriptionFile = "model.json";
constexpr const char* kScriptFile = "predict.py";
constexpr const char* kReportFile = "report.html";
constexpr const char* kFiles[] = {kModelFiles[0], kModelFiles[1],   kMetricsFile, kViewsFile, kRecordFile,
                                  kMembersFile,   kDescriptionFile, kScriptFile,  kReportFile};

Status refuse_existing(const std::string& folder) {
  std::error_code code;
  for (const char* name : kFiles) {
    const fs::path path = fs::path(folder) / name;
    if (fs::exists(fs::symlink_status(path, code)))
      return Error{ErrorKind::kRefused, path.string() + " already exists; --force overwrites it"};
  }
  return {};
}

// Requests slices until the last one.
Status for_each_slice(Client& client, schema::FetchRequest request, Slices slices,
                      const std::function<Status(const std::string&)>& take) {
  do {
    request.offset = slices.offset();
    const Result<schema::SliceReply> slice = client.ask_for<schema::SliceReply>(request);
    // The node's disk failed, not ours.
    if (!slice)
      return Error{slice.error().kind == ErrorKind::kIo ? ErrorKind::kFailed : slice.error().kind,
                   slice.error().message};
    if (const Status status = slices.add(*slice); !status) return status;
    if (const Status status = take(slice->data); !status) return status;
  } while (!slices.whole());
  return {};
}

// recorded: the file's bytes according to its writer's record.
Status fetch_file(Client& client, const schema::FetchRequest& request, std::optional<std::uint64_t> recorded,
                  std::uint64_t max, PartFile& file) {
  if (const Status status = file.open(); !status) return status;
  const Status fetched = for_each_slice(client, request, Slices(recorded, std::min(max, file.room())),
                                        [&](const std::string& bytes) { return file.write(bytes); });
  return fetched ? file.close() : fetched;
}

// The sentence about one member's copy that is not valid.
std::string file_problem(const std::string& node, const std::string& file, const Error& error) {
  if (error.kind == ErrorKind::kCorrupt) return node + "'s " + file + " is damaged: " + error.message;
  return node + "'s " + file + ": " + error.message;
}

// Members end a run within moments of each other, so this waits some seconds for the last of them.
Result<schema::MeshStatus> ask_ended_run(Client& client, std::string name) {
  const auto deadline = std::chrono::steady_clock::now() + kMembersEnd;
  while (true) {
    Result<schema::MeshStatus> mesh = ask_mesh(client, name, schema::Pick::kNewestEnded);
    if (!mesh) return mesh;
    const schema::RunStatus& run = mesh->runs.front();
    name = run.id;
    const bool all_ended = std::all_of(run.members.begin(), run.members.end(), [](const schema::MemberStatus& member) {
      return schema::has_ended(member.state);
    });
    if (!schema::has_ended(run.state) || all_ended || std::chrono::steady_clock::now() >= deadline ||
        !sleep_unless_interrupted(kFetchPollMs))
      return mesh;
  }
}

// Fetches one run from the members that have it and checks every file; it replaces a damaged one with another member's
// copy. No file appears under its name before all have arrived. Only the model is required: damaged records of the run
// (run.json, metrics.jsonl, views.jsonl, timelines) are reported and left out.
class Fetcher {
 public:
  Fetcher(Client& client, const schema::RunStatus& run, const FetchSource& source, std::string folder)
      : client_(client), run_(run), source_(source), folder_(std::move(folder)) {}

  Status fetch() {
    if (Status status = fetch_records(); !status) return status;
    for (const char* name : kModelFiles)
      if (Status status = fetch_model(name); !status) return status;
    if (Status status = fetch_metrics(); !status) return status;
    if (Status status = add_description(); !status) return status;
    if (Status status = fetch_traces(); !status) return status;
    return add_report();
  }
  // Fetches metrics.jsonl alone.
  Result<PartFile> fetch_only_metrics() {
    if (const Status status = fetch_records(); !status) return status.error();
    if (const Status status = fetch_metrics(); !status) return status.error();
    if (!fetched(kMetricsFile))
      return Error{ErrorKind::kFailed, "no node has metrics of run " + run_.id + "; tgctl status shows the nodes"};
    return std::move(files_.front());
  }
  Status keep() {
    std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
    for (const schema::MemberStatus& member : run_.members) names.push_back(timeline_of(member.node));
    for (const std::string& name : names) {  // files of another run are removed
      std::error_code code;
      if (!fetched(name)) fs::remove(fs::path(folder_) / name, code);
      if (code) return Error{ErrorKind::kIo, folder_ + "/" + name + " cannot be removed: " + code.message()};
    }
    for (PartFile& file : files_)
      if (Status status = file.keep(); !status) return status;
    return sync_folder(folder_);
  }
  const std::vector<PartFile>& files() const { return files_; }
  // Tells the members that their copies are no longer the only ones. One that is not reached keeps its copy longer.
  void mark_fetched() {
    for (const MemberRecord& record : records_)
      (void)client_.ask_for<schema::DoneReply>(schema::FetchedRequest{run_.id, record.node});
  }

 private:
  static std::string timeline_of(const std::string& node) { return "trace-" + node + ".json"; }
  PartFile part(const std::string& name) const { return PartFile((fs::path(folder_) / name).string()); }
  bool fetched(const std::string& name) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const PartFile& file) { return file.path() == part(name).path(); });
  }

  // A member with a damaged record may have a valid model, and comes last.
  Status fetch_records() {
    std::optional<Error> first;
    std::vector<MemberRecord> bare;
    for (const std::string& node : source_.nodes) {
      std::string json;
      const Status fetched =
          for_each_slice(client_, {run_.id, node, kRecordFile, 0}, Slices({}, schema::kMaxRecordBytes),
                         [&](const std::string& bytes) -> Status {
                           json += bytes;
                           return {};
                         });
      Result<MemberRecord> record =
          fetched ? parse_member_record(node, std::move(json), run_.id) : Result<MemberRecord>(fetched.error());
      if (record && (record->digest != source_.digest || record->digest_step != source_.step))
        record =
            Error{ErrorKind::kCorrupt, "it has digest " + hex_digest(record->digest) + " at step " +
                                           std::to_string(record->digest_step) + ", but " + node + " reported " +
                                           hex_digest(source_.digest) + " at step " + std::to_string(source_.step)};
      if (record) {
        records_.push_back(*std::move(record));
        continue;
      }
      print_note(file_problem(node, kRecordFile, record.error()));
      if (!first) first = Error{record.error().kind, file_problem(node, kRecordFile, record.error())};
      if (record.error().kind != ErrorKind::kUnreachable) bare.emplace_back().node = node;
    }
    records_.insert(records_.end(), bare.begin(), bare.end());
    if (!records_.empty()) return {};
    return *first;
  }

  // Fetches one member's copy and checks it against all that is known about it.
  Status fetch_checked(const std::string& node, const std::string& name, const std::optional<FileMark>& wanted,
                       bool model, PartFile& file, std::uint64_t max = kMaxFileBytes) {
    const std::optional<std::uint64_t> bytes = wanted ? std::optional(wanted->bytes) : std::nullopt;
    if (Status status = fetch_file(client_, {run_.id, node, name, 0}, bytes, max, file); !status) return status;
    const Result<FileMark> received = mark_of(file.part_path());
    if (!received) return received.error();
    if (wanted)
      if (Status status = check_mark(*received, *wanted); !status) return status;
    if (!model) return {};
    return check_model(file.part_path(), {run_.id, source_.step, source_.digest});
  }

  Status fetch_model(const std::string& name) {
    const std::optional<FileMark> wanted = common_mark(records_, name);
    std::optional<Error> last;
    for (const MemberRecord& record : records_) {
      if (wanted && record.mark(name) && record.mark(name) != wanted)
        print_note(record.node + "'s record has SHA-256 " + record.mark(name)->sha256 + " for " + name +
                   ", the other members' " + wanted->sha256);
      PartFile file = part(name);
      const Status good = fetch_checked(record.node, name, wanted, true, file);
      if (good) {
        if (last) print_note("using " + record.node + "'s " + name);
        if (name == kModelFiles[0]) model_node_ = record.node;
        files_.push_back(std::move(file));
        return {};
      }
      if (good.error().kind == ErrorKind::kIo) return good;  // our own disk
      last = Error{good.error().kind, file_problem(record.node, name, good.error())};
      print_note(last->message);
    }
    return Error{last->kind, "no reachable member has a valid " + name + " of run " + run_.id +
                                 "; nothing was written. Last error: " + last->message};
  }

  // metrics.jsonl has a member's own waits, so it differs between members. It comes with the record that has its hash.
  Status fetch_metrics() {
    record_ = &records_.front();
    for (const bool whole : {true, false}) {
      for (const MemberRecord& record : records_) {
        if (record.mark(kMetricsFile).has_value() != whole) continue;
        PartFile file = part(kMetricsFile);
        const Status good = fetch_checked(record.node, kMetricsFile, record.mark(kMetricsFile), false, file);
        if (good) {
          if (!whole) print_note(record.node + " has no hash of its " + kMetricsFile + "; lines may be missing");
          files_.push_back(std::move(file));
          if (!record.json.empty()) record_ = &record;
          return add_record();
        }
        if (good.error().kind == ErrorKind::kIo) return good;
        print_note(file_problem(record.node, kMetricsFile, good.error()));
      }
    }
    print_note(std::string("no ") + kMetricsFile + ": no reachable member has a valid one");
    return add_record();
  }

  // Adds the record, its views, and the members' engines and threads: `tgd recompute` reads all three.
  Status add_record() {
    if (record_->json.empty()) return {};
    if (Status status = add(kRecordFile, record_->json); !status) return status;
    if (Status status = add(kMembersFile, members_json(records_)); !status) return status;
    if (!record_->mark(kViewsFile)) return {};  // an older tgd wrote none
    PartFile file = part(kViewsFile);
    const Status good = fetch_checked(record_->node, kViewsFile, record_->mark(kViewsFile), false, file);
    if (good)
      files_.push_back(std::move(file));
    else if (good.error().kind == ErrorKind::kIo)
      return good;
    else
      print_note(std::string("no ") + kViewsFile + ": " + file_problem(record_->node, kViewsFile, good.error()));
    return {};
  }

  Status add(const std::string& name, std::string_view text) {
    PartFile file = part(name);
    if (Status status = file.open(); !status) return status;
    if (Status status = file.write(text); !status) return status;
    if (Status status = file.close(); !status) return status;
    files_.push_back(std::move(file));
    return {};
  }

  // Adds the files that allow to use the model without tgctl.
  Status add_description() {
    const std::string model = files_.front().part_path();
    const Result<std::string> description = metadata_value(model, "description"),
                              best = metadata_value(model, "best-step");
    for (const Result<std::string>* said : {&description, &best})
      if (!*said) return Error{said->error().kind, file_problem(model_node_, kModelFiles[0], said->error())};
    const std::uint64_t best_step = std::strtoull(best->c_str(), nullptr, 10);
    if (best_step > 0)
      print_note(std::string(kModelFiles[0]) + " is from step " + std::to_string(best_step) +
                 ", the best evaluation (keep = best); the digest is the last state's");
    if (description->empty()) {
      print_note(std::string("no ") + kDescriptionFile + " and no " + kScriptFile + ": " + kModelFiles[0] +
                 " does not describe its network, because gradients were replayed or an older tgd wrote it");
      return {};
    }
    const Result<std::string> json = compose_model_json(*description, record_->json, best_step);
    if (!json) {
      print_note(std::string("no ") + kDescriptionFile + " and no " + kScriptFile + ": " +
                 (record_->json.empty() ? std::string("no reachable member has a valid ") + kRecordFile
                                        : file_problem(model_node_, kModelFiles[0], json.error())));
      return {};
    }
    if (Status status = add(kDescriptionFile, *json); !status) return status;
    return add(kScriptFile, predict_script());
  }

  // Adds the report page. A problem with it is printed, and does not fail the fetch.
  Status add_report() {
    const auto part_of = [this](const char* name) {
      const auto file = std::ranges::find(files_, part(name).path(), &PartFile::path);
      return file == files_.end() ? std::string() : file->part_path();
    };
    const std::string metrics = part_of(kMetricsFile);
    if (record_->json.empty() || metrics.empty()) return {};
    std::ifstream views(part_of(kViewsFile), std::ios::binary);
    Result<ReportData> data = report_data(record_->json, std::string(std::istreambuf_iterator<char>(views), {}));
    Result<Curves> curves = read_curves({metrics, record_->node + "'s " + kMetricsFile});
    if (!data || !curves) {
      print_note(std::string("no ") + kReportFile + ": " +
                 (curves ? file_problem(record_->node, kRecordFile, data.error()) : curves.error().message));
      return {};
    }
    data->run = run_;
    data->node = record_->node;
    data->curves = *std::move(curves);
    data->made_ms = unix_time_ms();
    return add(kReportFile, report_page(*data));
  }

  // A run with trace = true has a timeline on every member; other runs have none. Its writer's record has its hash;
  // without that record, or from an older tgd, it is not checked.
  Status fetch_traces() {
    if (std::none_of(records_.begin(), records_.end(), [](const MemberRecord& record) { return record.traced; }))
      return {};
    for (const schema::MemberStatus& member : run_.members) {
      if (member.digest == 0) continue;
      PartFile file = part(timeline_of(member.node));
      const auto record = std::ranges::find(records_, member.node, &MemberRecord::node);
      const std::optional<FileMark> wanted = record == records_.end() ? std::nullopt : record->mark(kTraceFile);
      const Status good = fetch_checked(member.node, kTraceFile, wanted, false, file, kMaxTraceBytes);
      if (good) {
        files_.push_back(std::move(file));
        continue;
      }
      if (good.error().kind == ErrorKind::kIo) return good;
      print_note("no timeline of " + member.node + ": " + file_problem(member.node, kTraceFile, good.error()));
    }
    return {};
  }

  Client& client_;
  const schema::RunStatus& run_;
  const FetchSource& source_;
  const std::string folder_;
  std::vector<MemberRecord> records_;     // in the order in which members are asked
  const MemberRecord* record_ = nullptr;  // the one that becomes run.json
  std::vector<PartFile> files_;           // the model first
  std::string model_node_;                // the member with the copy of the model
};

}  // namespace

int fetch(Client& client, const Command& command) {
  const Result<schema::MeshStatus> mesh = ask_ended_run(client, command.operand);
  if (!mesh) return fail(mesh.error());
  const schema::RunStatus& run = mesh->runs.front();
  const Result<FetchSource> source = choose_fetch_source(run, mesh->node, command.partial);
  if (!source) return fail(source.error());
  for (const std::string& note : source->notes) print_note(note);
  if (const Status status = prepare_folder(command.output); !status) return fail(status.error());
  if (!command.force)
    if (const Status status = refuse_existing(command.output); !status) return fail(status.error());

  Fetcher fetcher(client, run, *source, command.output);
  if (const Status status = fetcher.fetch(); !status) return fail(status.error());
  if (const Status status = fetcher.keep(); !status) return fail(status.error());
  fetcher.mark_fetched();
  if (!command.partial || schema::is_authoritative(run.state))
    print_note((source->nodes.size() == run.members.size() ? "all " : std::to_string(source->nodes.size()) + " of ") +
               std::to_string(run.members.size()) + " members agree on digest " + hex_digest(source->digest) +
               " at step " + std::to_string(source->step));
  for (const PartFile& file : fetcher.files()) print(file.path() + "\n");
  return kOk;
}

Result<PartFile> fetch_metrics(Client& client, const std::string& name, const std::string& folder) {
  const Result<schema::MeshStatus> mesh = ask_ended_run(client, name);
  if (!mesh) return mesh.error();
  const Result<FetchSource> source = choose_fetch_source(mesh->runs.front(), mesh->node, true);
  if (!source) return source.error();
  for (const std::string& note : source->notes) print_note(note);
  return Fetcher(client, mesh->runs.front(), *source, folder).fetch_only_metrics();
}

}  // namespace tg::ctl
