// What a run leaves on disk: model.safetensors (the moving average, what accuracy is quoted for), model-raw.safetensors
// (the parameters) and state.safetensors (parameters and optimizer slots, to carry on from). Names and layouts are
// PyTorch's.
#pragma once

#include <map>
#include <string>

#include "daemon/step/replica.h"
#include "engine/segment.h"
#include "kernels/base/status.h"

namespace tg::daemon {

// Each file is replaced atomically; the first error is returned, with its path.
Status write_artefacts(const std::string& directory, const engine::SegmentTable& segments, const Replica& replica,
                       const std::map<std::string, std::string>& metadata);

}  // namespace tg::daemon
