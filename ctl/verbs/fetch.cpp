#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "ctl/fetch/fetch_source.h"
#include "ctl/fetch/part_file.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/hex.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMembersEnd{10};
constexpr int kPollMs = 100;
constexpr const char* kFiles[] = {"model.safetensors", "model-raw.safetensors", "metrics.jsonl", "run.json"};

Status prepare_folder(const std::string& folder, bool force) {
  std::error_code code;
  if (fs::exists(folder, code) && !fs::is_directory(folder, code))
    return Error{ErrorKind::kUsage, folder + " is a file; -o takes a folder, where several files go"};
  fs::create_directories(folder, code);
  if (code) return Error{ErrorKind::kIo, folder + " cannot be made: " + code.message()};
  for (const char* name : kFiles) {
    const fs::path path = fs::path(folder) / name;
    if (!force && fs::exists(fs::symlink_status(path, code))) {
      return Error{ErrorKind::kRefused, path.string() + " is there already; --force overwrites it"};
    }
  }
  return {};
}

Status fetch_file(Client& client, schema::FetchRequest request, PartFile& file) {
  if (const Status status = file.open(); !status) return status;
  while (true) {
    const Result<schema::SliceReply> slice = client.ask_for<schema::SliceReply>(request);
    if (!slice) return Error{slice.error().kind, request.file + ": " + slice.error().message};
    if (const Status status = file.write(slice->data); !status) return status;
    request.offset += slice->data.size();
    if (slice->final || slice->data.empty()) {
      if (slice->final && request.offset == slice->total_bytes) return file.close();
      return Error{ErrorKind::kCorrupt, request.file + ": " + std::to_string(request.offset) + " of " +
                                            std::to_string(slice->total_bytes) + " bytes came from " + slice->node};
    }
  }
}

// Members end a run within moments of each other; who fetches at once waits for the last of them.
Result<schema::RunStatus> ask_ended_run(Client& client, const std::string& id) {
  const auto deadline = std::chrono::steady_clock::now() + kMembersEnd;
  while (true) {
    Result<schema::RunStatus> run = ask_run(client, id);
    if (!run || !schema::is_final(run->state)) return run;
    const bool all_ended =
        std::all_of(run->members.begin(), run->members.end(),
                    [](const schema::MemberStatus& member) { return schema::is_final(member.state); });
    if (all_ended || std::chrono::steady_clock::now() >= deadline || !sleep_unless_interrupted(kPollMs)) return run;
  }
}

// A run with trace = true has a timeline on every member; other runs have none.
Status fetch_traces(Client& client, const schema::RunStatus& run, const std::string& folder,
                    std::vector<PartFile>& files) {
  for (const schema::MemberStatus& member : run.members) {
    PartFile file((fs::path(folder) / ("trace-" + member.node + ".json")).string());
    const Status status = fetch_file(client, {run.id, member.node, "trace.json", 0}, file);
    if (status) {
      files.push_back(std::move(file));
      continue;
    }
    if (status.error().kind == ErrorKind::kNotFound) return {};
    if (status.error().kind != ErrorKind::kUnreachable) return status;
    say("no timeline of " + member.node + ": " + status.error().message);
  }
  return {};
}

}  // namespace

int fetch(Client& client, const Command& command) {
  const Result<schema::RunStatus> run = ask_ended_run(client, command.operand);
  if (!run) return fail(run.error());
  const Result<FetchSource> source = choose_fetch_source(*run, command.partial);
  if (!source) return fail(source.error());
  for (const std::string& note : source->notes) say(note);
  if (const Status status = prepare_folder(command.output, command.force); !status) return fail(status.error());

  std::vector<PartFile> files;
  for (const char* name : kFiles) {
    files.emplace_back((fs::path(command.output) / name).string());
    const Status status = fetch_file(client, {run->id, source->node, name, 0}, files.back());
    if (!status) return fail(status.error());
  }
  if (const Status status = fetch_traces(client, *run, command.output, files); !status) return fail(status.error());
  for (PartFile& file : files) {
    if (const Status status = file.keep(); !status) return fail(status.error());
  }
  if (const Status status = sync_folder(command.output); !status) return fail(status.error());
  if (source->node.empty()) {
    say("all " + std::to_string(run->members.size()) + " members agree on digest " +
        hex_digest(run->members[0].digest) + " at step " + std::to_string(run->members[0].digest_step));
  }
  for (const PartFile& file : files) print(file.path() + "\n");
  return kOk;
}

}  // namespace tg::ctl
