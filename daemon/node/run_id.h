// Names of runs.
#pragma once

#include <cstdint>
#include <string>

namespace tg::daemon {

// "lenet-20171204-0900-3f2a": sorts by time, typed by its beginning.
std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw);

// Lower case, digits, dashes, dots and underscores, neither a dash nor a dot first; not too long for a folder's name.
bool valid_run_id(const std::string& id);

}  // namespace tg::daemon
