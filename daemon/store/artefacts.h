// The files that a run leaves on disk: model.safetensors (the moving average, whose accuracy is quoted),
// model-raw.safetensors (the parameters) and state.safetensors (parameters, optimizer slots and average, to resume
// from), each with the running statistics. If a best model is kept, model.safetensors is that one, and the state has it
// too. A checkpoint is the state.safetensors of an earlier step. Names and layouts are PyTorch's. The files contain
// nothing about the node that writes them: all members of a run write the same bytes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/step/replica.h"
#include "daemon/step/state_arrays.h"
#include "engine/model.h"
#include "engine/storage/safetensors.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kRawModelFile = "model-raw.safetensors";
inline constexpr const char* kStateFile = "state.safetensors";
// Names in the metadata.
inline constexpr const char* kValuesHash = "values-sha256";  // the hash of all that follows the header
inline constexpr const char* kBestStep = "best-step";        // the step of the best model's evaluation, if one is kept
inline constexpr const char* kDescription = "description";   // the model's description (daemon/run/description.h)

// Suffixes of parameters' names in a state file; a slot's number follows its suffix.
inline const std::string kSlotSuffix = ".slot", kAverageSuffix = ".average", kBestSuffix = ".best";

using Artefacts = std::map<std::string, engine::TensorImage>;  // by the file's name
using FileMarks = std::map<std::string, engine::FileMark>;     // by the file's name

// Adds hashes of the values and of the state file's header to the metadata, so it reads all values. The model files get
// the metadata without the entries that only a resume needs (state_facts.h).
Result<Artefacts> artefacts_of(const engine::Model& model, const StateArrays& arrays,
                               const std::map<std::string, std::string>& metadata);
// Replaces each file atomically; returns the first error, with its path.
Result<FileMarks> write_artefacts(const std::string& directory, const Artefacts& artefacts);

// A state file whose header matches its hash, and the three artefacts made from it. They are no copies: reading them
// reads the file. Errors name the path.
struct StateFile {
  std::string path;
  std::map<std::string, std::string> metadata;
  std::vector<engine::TensorSource> tensors;
  Artefacts artefacts = {};
};
Result<StateFile> open_state_file(const std::string& path);
// Reads all values and compares their hash; calls advance, which may throw, after each part.
Status check_values(
    const StateFile& state, const std::function<void()>& advance = [] {});

}  // namespace tg::daemon
