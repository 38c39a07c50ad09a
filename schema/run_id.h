// Names of runs whose starter gave none: tgctl draws them, and a node for who asks without one. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace tg::schema {

// "lenet-20171204-0900-3f2a": sorts by time, typed by its beginning.
std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw);

}  // namespace tg::schema
