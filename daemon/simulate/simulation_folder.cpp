#include "daemon/simulate/simulation_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "daemon/run/state_metadata.h"
#include "daemon/store/artefacts.h"
#include "daemon/store/checkpoints.h"
#include "daemon/store/recovery_points.h"
#include "engine/storage/atomic_file.h"
#include "kernels/base/regular_file.h"
#include "schema/limits.h"

namespace tg::daemon {

namespace fs = std::filesystem;
namespace {

constexpr const char* kLockFile = "lock";

// "steps = 300", of the first key that is another one there; "" = none is.
std::string other_setting(const schema::JobSpec& there, const schema::JobSpec& here) {
  std::istringstream lines(schema::canonical_job(there)), wanted(schema::canonical_job(here));
  for (std::string line, want; std::getline(lines, line) && std::getline(wanted, want);)
    if (line != want) return line;
  return "";
}

}  // namespace

Status SimulationFolder::lock() {
  std::error_code code;
  const auto strange = [](const fs::directory_entry& one) { return one.path().filename() != kLockFile; };
  if (!fs::exists(fs::path(path_) / kRecordFile, code) &&
      std::any_of(fs::directory_iterator(path_, code), fs::directory_iterator(), strange))
    return Error{ErrorKind::kUsage, path_ + " has no " + kRecordFile + ", so no simulation: name a new folder with -o"};
  fs::create_directories(path_, code);
  if (code) return Error{ErrorKind::kIo, "cannot create " + path_ + ": " + code.message()};
  lock_.emplace(path_ + "/" + kLockFile, O_RDWR | O_CREAT);
  if (lock_->fd() < 0) return Error{ErrorKind::kIo, "cannot write in " + path_ + ": " + std::strerror(errno)};
  if (::flock(lock_->fd(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorKind::kRefused, path_ +
                                          " is being computed by another tgd simulate: wait for it, or name another "
                                          "folder with -o"};
  engine::delete_partial_files(path_);
  return {};
}

Result<std::optional<RunRecord>> SimulationFolder::read() const {
  const Result<std::string> text = RegularFile::text(path_ + "/" + kRecordFile, schema::kMaxRecordBytes);
  if (!text && text.error().kind == ErrorKind::kNotFound) return std::optional<RunRecord>();
  Result<RunRecord> record = text ? record_from_json(*text) : Result<RunRecord>(text.error());
  if (!record) return Error{ErrorKind::kCorrupt, path_ + "/" + kRecordFile + " is damaged: " + record.error().message};
  return std::optional(*std::move(record));
}

std::optional<SavedStart> SimulationFolder::saved(const RunRecord& record) {
  std::error_code ignored;
  fs::remove(fs::path(path_) / kStateFile, ignored);
  const std::optional<RecoveryPoint> found = newest_recovery_point(path_, record);
  if (!found || found->id.step == 0) return std::nullopt;
  SavedStart start;
  start.state = found->id;
  start.directory = path_;
  start.record = std::make_shared<const RunRecord>(record);
  start.counters = found->facts.counters;
  start.model_hash = record.model_hash;
  start.data_hash = record.data_hash;
  return start;
}

Result<std::optional<SavedStart>> SimulationFolder::take(const schema::JobSpec& job,
                                                         const std::vector<std::uint16_t>& weights) {
  if (Status locked = lock(); !locked) return locked.error();
  const Result<std::optional<RunRecord>> found = read();
  if (!found) return found.error();
  if (!*found) return std::optional<SavedStart>();
  const RunRecord& record = **found;
  const Result<schema::JobSpec> there = schema::parse_job(record.spec, kRecordFile);
  if (!there)
    return Error{ErrorKind::kCorrupt,
                 path_ + "/" + kRecordFile + " is damaged: its job cannot be read: " + there.error().message};
  std::string other = other_setting(*there, job);
  if (other.empty() && record.weights != weights) {
    other = std::to_string(record.weights.size()) + " members of weights ";
    for (const std::uint16_t weight : record.weights)
      other += (other.back() == ' ' ? "" : ",") + std::to_string(weight);
  }
  if (!other.empty())
    return Error{ErrorKind::kUsage, path_ + " has another run, " + record.id + ", with " + other +
                                        ": name another folder with -o, or delete " + path_};
  if (schema::is_final(record.status.state))
    return Error{ErrorKind::kUsage, path_ + " has this run already, " + std::string(to_word(record.status.state)) +
                                        " at step " + std::to_string(record.status.step) +
                                        "; name another folder with -o to compute it again"};
  return saved(record);
}

Status SimulationFolder::open_lines(const char* name, std::uint64_t step, std::unique_ptr<LineFile>& file) const {
  const std::string path = path_ + "/" + name;
  if (step > 0)
    if (Status cut = truncate_after(path, step); !cut) return cut;
  file = std::make_unique<LineFile>(path, step > 0 ? LineFile::Mode::kAppend : LineFile::Mode::kTruncate);
  return {};
}

Status SimulationFolder::open(const RunRecord& record, std::uint64_t step, bool with_gradients) {
  if (Status opened = open_lines(kMetricsFile, step, metrics_); !opened) return opened;
  if (with_gradients)
    if (Status opened = open_lines("gradients.jsonl", step, gradients_); !opened) return opened;
  return engine::write_file_atomically(path_ + "/" + kRecordFile, record_to_json(record));
}

Status SimulationFolder::save(RunRecord& record, const Prepared& prepared) {
  const schema::RunStatus& status = record.status;
  const schema::StateId state{status.lineage, record.view, status.digest_step, status.digest};
  const Result<Artefacts> artefacts = artefacts_of(prepared.model, saved_arrays(arrays_of(*prepared.replica), status),
                                                   saved_metadata(record, state, prepared));
  if (!artefacts) return artefacts.error();
  const bool ends = schema::is_final(status.state);
  for (LineFile* file : {metrics_.get(), gradients_.get()}) {
    if (file == nullptr) continue;
    file->flush();
    if (Status written = ends ? file->close() : file->sync(); !written) return written;
  }
  if (ends) {
    Result<FileMarks> marks = write_artefacts(path_, *artefacts);
    if (!marks) return marks.error();
    record.files = *std::move(marks);
    const Result<engine::FileMark> lines = engine::mark_of_file(path_ + "/" + kMetricsFile);
    if (!lines) return lines.error();
    record.files[kMetricsFile] = *lines;
  } else {
    if (Status written = write_checkpoint(path_, state, record.from, artefacts->at(kStateFile)); !written)
      return written;
  }
  if (Status written = engine::write_file_atomically(path_ + "/" + kRecordFile, record_to_json(record)); !written)
    return written;
  if (ends) delete_checkpoints(path_);
  return {};
}

}  // namespace tg::daemon
