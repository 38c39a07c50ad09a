// Names of classes. Any thread.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

// The lines of a file, one name each, and numbers for the classes that have no line; "" = no file: numbers for all.
// More names than classes are kept. Errors name the file.
Result<std::vector<std::string>> read_class_names(const std::string& path, std::size_t classes);

}  // namespace tg::engine
