// Names of classes. Any thread.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

// Reads a file with one name per line; classes without a line are named by their numbers, and without a file (path "")
// all are. More names than classes are kept. Errors name the file.
Result<std::vector<std::string>> read_class_names(const std::string& path, std::size_t classes);

}  // namespace tg::engine
