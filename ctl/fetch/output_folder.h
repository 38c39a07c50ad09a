// The folder that -o names. Main thread only.
#pragma once

#include <string>

#include "kernels/base/status.h"

namespace tg::ctl {

// It is there and can be written to; the error says who may.
Status prepare_folder(const std::string& folder);

}  // namespace tg::ctl
