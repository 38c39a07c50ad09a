#include "daemon/simulate/simulation_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "daemon/run/what_is_saved.h"
#include "daemon/store/artefacts.h"
#include "daemon/store/checkpoints.h"
#include "daemon/store/found_states.h"
#include "daemon/store/run_files.h"
#include "engine/storage/atomic_file.h"

namespace tg::daemon {

namespace fs = std::filesystem;

Result<std::optional<RunRecord>> SimulationFolder::read() const {
  std::error_code code;
  std::ifstream file(fs::path(path_) / kRecordFile, std::ios::binary);
  if (!file) {
    if (!fs::exists(path_, code) || fs::is_empty(path_, code)) return std::optional<RunRecord>();
    return Error{ErrorKind::kUsage, path_ + " has no " + kRecordFile + ", so no simulation: name a new folder with -o"};
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Result<RunRecord> record = record_from_json(text);
  if (!record) return Error{ErrorKind::kCorrupt, path_ + "/" + kRecordFile + " is damaged: " + record.error().message};
  return std::optional(*std::move(record));
}

std::optional<SavedStart> SimulationFolder::saved(const RunRecord& record) const {
  const std::optional<FoundState> found = newest_state_in(path_, record);
  if (!found || found->id.step == 0) return std::nullopt;
  SavedStart start;
  start.state = found->id;
  start.directory = path_;
  start.record = std::make_shared<const RunRecord>(record);
  start.counters = found->facts.counters;
  start.model_hash = record.model_hash;
  start.data_hash = record.data_hash;
  start.engine_build = record.own.engine_build;
  start.threads = record.own.threads;
  return start;
}

Status SimulationFolder::open_lines(const char* name, std::uint64_t step, std::unique_ptr<LineFile>& file) const {
  const std::string path = path_ + "/" + name;
  if (step > 0)
    if (Status cut = cut_back(path, step); !cut) return cut;
  file = std::make_unique<LineFile>(path, step > 0 ? LineFile::Begin::kGoesOn : LineFile::Begin::kAnew);
  return {};
}

Status SimulationFolder::open(const RunRecord& record, std::uint64_t step, bool with_gradients) {
  std::error_code code;
  fs::create_directories(path_, code);
  if (code) return Error{ErrorKind::kIo, "cannot create " + path_ + ": " + code.message()};
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
  for (LineFile* file : {metrics_.get(), gradients_.get()})
    if (file != nullptr) file->flush();
  if (schema::is_final(status.state)) {
    for (LineFile* file : {metrics_.get(), gradients_.get()})
      if (file != nullptr)
        if (Status closed = file->close(); !closed) return closed;
    Result<FileMarks> marks = write_artefacts(path_, *artefacts);
    if (!marks) return marks.error();
    record.files = *std::move(marks);
    const Result<engine::FileMark> lines = engine::mark_of_file(path_ + "/" + kMetricsFile);
    if (!lines) return lines.error();
    record.files[kMetricsFile] = *lines;
  } else {
    for (LineFile* file : {metrics_.get(), gradients_.get()})
      if (file != nullptr)
        if (Status synced = file->sync(); !synced) return synced;
    if (Status written = write_checkpoint(path_, state, record.from, artefacts->at(kStateFile)); !written)
      return written;
  }
  if (Status written = engine::write_file_atomically(path_ + "/" + kRecordFile, record_to_json(record)); !written)
    return written;
  if (schema::is_final(status.state)) delete_checkpoints(path_);
  return {};
}

}  // namespace tg::daemon
