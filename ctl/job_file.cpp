#include "ctl/job_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "schema/limits.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSuggested = 3;

// Where job files lie: in a clone, and beside an installed tgctl.
std::vector<fs::path> job_folders() {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  return {"deploy/jobs", program.parent_path().parent_path() / "share" / "tgd" / "jobs"};
}

// "; did you mean deploy/jobs/lenet-mnist.job?" for lenet, lenet-mnist, lenet-mnist.job and x/lenet-mist.job.
std::string did_you_mean(const std::string& path) {
  const std::vector<std::string> jobs = known_jobs();
  if (jobs.empty()) return "; it takes a job file, and tgctl help job explains its keys";
  const std::string asked = fs::path(path).stem().string();
  std::string fitting;
  std::size_t count = 0;
  std::vector<std::string> stems;
  for (const std::string& job : jobs) {
    const std::string stem = fs::path(job).stem().string();
    stems.push_back(stem);
    if (asked.empty() || !stem.starts_with(asked) || count == kMostSuggested) continue;
    fitting += (count++ == 0 ? "" : " or ") + job;
  }
  if (const std::string near = schema::nearest(asked, stems); count == 0 && !near.empty())
    fitting = jobs[static_cast<std::size_t>(std::find(stems.begin(), stems.end(), near) - stems.begin())];
  if (!fitting.empty()) return "; did you mean " + fitting + "?";
  return "; it takes a job file, and some are in " + fs::path(jobs[0]).parent_path().string();
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    return Error{ErrorKind::kInvalidJob,
                 path + " cannot be read: " + std::strerror(error) + (error == ENOENT ? did_you_mean(path) : "")};
  }
  std::string text(schema::kMostSpecBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorKind::kInvalidJob, path + " cannot be read; is it a file?"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

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

Result<schema::JobSpec> read_job(const Command& command) {
  const Result<std::string> text = read_text(command.operand);
  if (!text) return text.error();
  Result<schema::JobSpec> job = schema::parse_job(*text, command.operand);
  if (!job) return job;
  for (const std::string& setting : command.settings) {
    const Status status = schema::override_job_key(*job, setting);
    if (!status) return Error{status.error().kind, "--set " + setting + ": " + status.error().message};
  }
  if (const Status status = schema::validate_job(*job, 0); !status) return status.error();
  return job;
}

}  // namespace tg::ctl
