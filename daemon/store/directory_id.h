// The identity of a state directory: a random number, drawn when the directory is made, in its file directory-id (16
// hexadecimal digits and a newline). A voter in a run's views is a seat together with its directory: a node whose
// directory was emptied or replaced is a new voter.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kDirectoryIdFile = "directory-id";

// Reads the number, which is never 0. kNotFound if there is none; an error about a damaged file says what to do.
Result<std::uint64_t> read_directory_id(const std::string& state_dir);
// The same, but draws and writes one if there is none.
Result<std::uint64_t> directory_id(const std::string& state_dir);

}  // namespace tg::daemon
