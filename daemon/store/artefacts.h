// What a run leaves on disk: model.safetensors (the moving average, what accuracy is quoted for), model-raw.safetensors
// (the parameters) and state.safetensors (parameters, optimizer slots and average, to carry on from). Names and layouts
// are PyTorch's. Nothing in them is of the node that writes them: all members of a run write the same bytes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemon/step/replica.h"
#include "engine/segment.h"
#include "engine/storage/safetensors.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kRawModelFile = "model-raw.safetensors";
inline constexpr const char* kStateFile = "state.safetensors";
inline constexpr const char* kValuesHash = "values-sha256";  // in the metadata: of all that follows the header

using Artefacts = std::map<std::string, engine::TensorImage>;  // by the file's name
using FileMarks = std::map<std::string, engine::FileMark>;     // by the file's name

// Images that read the replica whenever they are read, by one thread at a time; both outlive them. Adds the values'
// hash to the metadata, so everything is read once here. advance: called whenever a part was read.
Result<Artefacts> artefacts_of(
    const engine::SegmentTable& segments, const Replica& replica, const std::map<std::string, std::string>& metadata,
    const std::function<void()>& advance = [] {});
// Each file is replaced atomically; the first error is returned, with its path.
Result<FileMarks> write_artefacts(const std::string& directory, const Artefacts& artefacts);

}  // namespace tg::daemon
