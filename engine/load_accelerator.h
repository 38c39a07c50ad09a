// Finds and loads the module of a device (accelerator.h) and opens the device. tgd is the same program on every
// machine; nothing in it asks whether CUDA was there when it was built.
//
// The module's place follows from the running program's: where `cmake --install` puts it (../lib/tgd/tgd-cuda.so beside
// bin, with the platform's name of lib), else, as in a build tree, ../engine/tgd-cuda.so. May block for seconds. One
// thread, once: a loaded module stays loaded, even after an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/accelerator.h"
#include "kernels/base/status.h"

namespace tg::engine {

// The places of the module, in the order tried. program: the path of this program.
std::vector<std::string> module_paths(const std::string& program);

// The accelerator lives as long as the process. build: this program's id. Errors are one line with the next action, of
// kind kNotFound if no module is installed, else kFailed: a library that it needs is missing, it is of another build or
// not a module at all, or it says why it cannot open the device.
Result<Accelerator*> load_accelerator(const AcceleratorOptions& options, std::string_view build);

}  // namespace tg::engine
