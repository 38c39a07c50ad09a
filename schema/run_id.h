// Names for runs that were given none: tgctl draws them, or the node if a request has none. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace tg::schema {

// "lenet-20171204-0900-3f2a": sorts by time, and its beginning is enough to type.
std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw);

}  // namespace tg::schema
