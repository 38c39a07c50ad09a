#include "daemon/store/unsaved_states.h"

#include <algorithm>
#include <span>

namespace tg::daemon {

void UnsavedStates::keep(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive,
                         std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  states_.insert_or_assign(id, State{std::move(artefacts), std::move(alive), bytes});
}

UnsavedStates::Summary UnsavedStates::summary() const {
  Summary all;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, state] : states_) {
    all.bytes += state.bytes;
    all.runs += (all.runs.empty() ? "" : ", ") + id;
  }
  return all;
}

std::set<std::string> UnsavedStates::ids() const {
  std::set<std::string> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, state] : states_) all.insert(id);
  return all;
}

Result<FileMarks> UnsavedStates::write(const std::string& id) const {
  std::optional<State> held;  // no lock is held while a disk is waited for
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = states_.find(id); found != states_.end()) held = found->second;
  }
  if (!held) return Error{ErrorKind::kNotFound, id};
  return write_artefacts(files_.directory(id), held->artefacts);
}

void UnsavedStates::drop(const std::string& id) {
  const std::lock_guard lock(mutex_);
  states_.erase(id);
  opened_ = {};  // a new file may take the checkpoint's name
}

Result<FileSlice> UnsavedStates::read(const RunRecord& record, const std::string& file, std::uint64_t offset,
                                      std::size_t most_bytes) const {
  const std::lock_guard lock(mutex_);
  const Artefacts* artefacts = nullptr;
  if (const auto found = states_.find(record.id); found != states_.end()) {
    artefacts = &found->second.artefacts;
  } else if (!record.checkpoint.empty()) {
    const std::string path = files_.directory(record.id) + "/" + record.checkpoint;
    if (opened_.first != path) {
      Result<StateFile> state = open_state_file(path);
      if (!state) return state.error();
      opened_ = {path, std::move(state->artefacts)};
    }
    artefacts = &opened_.second;
  }
  const auto image = artefacts == nullptr ? Artefacts::const_iterator() : artefacts->find(file);
  if (artefacts == nullptr || image == artefacts->end()) return Error{ErrorKind::kNotFound, file};
  FileSlice slice;
  slice.total_bytes = image->second.bytes();
  if (offset >= slice.total_bytes) return slice;
  slice.data.resize(std::min<std::uint64_t>(most_bytes, slice.total_bytes - offset));
  if (Status status = image->second.read(offset, std::as_writable_bytes(std::span(slice.data))); !status)
    return status.error();
  return slice;
}

}  // namespace tg::daemon
