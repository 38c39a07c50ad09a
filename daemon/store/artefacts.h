// What a run leaves on disk: model.safetensors (the moving average, what accuracy is quoted for), model-raw.safetensors
// (the parameters) and state.safetensors (parameters, optimizer slots and average, to carry on from), each with the
// running statistics. Where a best model is kept, model.safetensors is that one, and the state has it too. A checkpoint
// is the state.safetensors of an earlier step. Names and layouts are PyTorch's. They contain nothing about the node
// that writes them: all members of a run write the same bytes.
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
// In the metadata.
inline constexpr const char* kValuesHash = "values-sha256";  // of all that follows the header
inline constexpr const char* kBestStep = "best-step";        // of the best model's evaluation, where one is kept
inline constexpr const char* kDescription = "description";   // of the model: daemon/run/description.h

// What follows a parameter's name in a state file; a slot's number follows that.
inline const std::string kSlotSuffix = ".slot", kAverageSuffix = ".average", kBestSuffix = ".best";

using Artefacts = std::map<std::string, engine::TensorImage>;  // by the file's name
using FileMarks = std::map<std::string, engine::FileMark>;     // by the file's name

// Adds hashes of the values and of the state file's header to the metadata, so everything is read here. The model files
// get the metadata without what is only for going on (state_facts.h).
Result<Artefacts> artefacts_of(const engine::Model& model, const StateArrays& arrays,
                               const std::map<std::string, std::string>& metadata);
// Each file is replaced atomically; the first error is returned, with its path.
Result<FileMarks> write_artefacts(const std::string& directory, const Artefacts& artefacts);

// The three files, out of a state file whose header is whole by its hash, without a copy: they read it whenever they
// are read. Errors name the path.
struct StateFile {
  std::string path;
  std::map<std::string, std::string> metadata;
  std::vector<engine::TensorSource> tensors;
  Artefacts artefacts = {};
};
Result<StateFile> open_state_file(const std::string& path);
// Reads all values, to compare their hash; calls advance after each part, which may throw.
Status check_values(
    const StateFile& state, const std::function<void()>& advance = [] {});

}  // namespace tg::daemon
