#include "ctl/job_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ctl/terminal/console.h"
#include "kernels/base/regular_file.h"
#include "schema/limits.h"
#include "schema/options/unused_keys.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSuggested = 3;

// The folders for job files: in a clone, beside an installed tgctl, and in the clone where this tgctl was built.
std::vector<fs::path> job_folders() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  return {"deploy/jobs", folder.parent_path() / "share" / "tgd" / "jobs",
          folder.parent_path().parent_path().parent_path() / "deploy" / "jobs"};
}

// Paths of the job files in the first of these folders that has any; sorted.
std::vector<std::string> known_jobs() {
  std::vector<std::string> jobs;
  for (const fs::path& folder : job_folders()) {
    std::error_code code;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
      if (at->path().extension() == ".job") jobs.push_back(at->path().string());
    if (!jobs.empty()) break;
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

constexpr const char* kStdin = "-";

// "; did you mean lenet-mnist or lenet-synthetic?" for lenet, the first of them for lenet-mnist.job and
// x/lenet-mist.job.
std::string did_you_mean(const std::string& path) {
  std::vector<std::string> names;
  for (const std::string& job : known_jobs()) names.push_back(fs::path(job).stem().string());
  if (names.empty())
    return "; give a job file, whose keys tgctl help job explains (no jobs are installed in " +
           schema::joined({job_folders()[0], job_folders()[1]}) + ")";
  const std::string asked = fs::path(path).stem().string();
  std::string fitting;
  std::size_t count = 0;
  for (const std::string& name : names)
    if (!asked.empty() && name.starts_with(asked) && count < kMaxSuggested)
      fitting += (count++ == 0 ? "" : " or ") + name;
  if (count == 0) fitting = schema::nearest(asked, names);
  if (!fitting.empty()) return "; did you mean " + fitting + "?";
  return "; give a job file, or the name of an installed one: " + schema::joined(names);
}

// The path of the installed job NAME or NAME.job; an existing file's path is returned as it is.
std::string job_path(const std::string& name) {
  std::error_code code;
  if (name == kStdin || (fs::exists(name, code) && !fs::is_directory(name, code))) return name;
  for (const std::string& job : known_jobs()) {
    const std::string file = fs::path(job).filename().string();
    if (file != name && file != name + ".job") continue;
    print_note("using job " + job);
    return job;
  }
  return name;
}

Result<std::string> read_text(const std::string& path) {
  std::string text(schema::kMaxSpecBytes + 1, '\0');
  if (path == kStdin) {
    std::ifstream file("/dev/stdin", std::ios::binary);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.empty()) return Error{ErrorKind::kInvalidJob, "stdin is empty: start - takes a job file from there"};
    return text;
  }
  const Result<RegularFile> file = RegularFile::open(path);
  std::error_code code;
  const Result<std::size_t> got =
      file ? file->read(0, std::as_writable_bytes(std::span(text))) : Result<std::size_t>(file.error());
  if (!got)
    return Error{ErrorKind::kInvalidJob,
                 path + " cannot be read: " + got.error().message +
                     (got.error().kind == ErrorKind::kNotFound ? did_you_mean(path)
                      : fs::is_directory(path, code)           ? "; give a job file, such as " + path + "/my.job"
                                                               : "; give a job file, or - for stdin")};
  text.resize(*got);
  return text;
}

}  // namespace

Result<schema::JobSpec> read_job(const Command& command) {
  const std::string path = job_path(command.operand);
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  const std::string file = path == kStdin ? "stdin" : path;
  Result<schema::JobSpec> job = schema::parse_job(*text, file);
  if (!job) return job;
  for (const std::string& setting : command.settings) {
    const Status status = schema::override_job_key(*job, setting);
    if (!status) return Error{status.error().kind, "--set " + setting + ": " + status.error().message};
  }
  if (const Status status = schema::validate_job(*job, 0); !status)
    return Error{status.error().kind, file + ": " + status.error().message};
  for (const std::string& unused : schema::unused_keys(*job, *text, file)) warn(unused);
  return job;
}

}  // namespace tg::ctl
