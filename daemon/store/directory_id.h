// What tells a state directory from every other one: a number, drawn when the directory is made, in its file
// directory-id (16 hexadecimal digits and a newline). A node's votes about the views of a run are those of its seat
// and its directory: with a directory that was emptied, or is another one, it is not the old voter.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kDirectoryIdFile = "directory-id";

// Draws and writes it where there is none; never 0. A damaged file is an error that says what to do.
Result<std::uint64_t> directory_id(const std::string& state_dir);

}  // namespace tg::daemon
