// The folder that -o names. Main thread only.
#pragma once

#include <string>

#include "kernels/base/status.h"

namespace tg::ctl {

// Creates the folder if needed, and checks that it can be written to; the error names the user that may.
Status prepare_folder(const std::string& folder);

}  // namespace tg::ctl
