// What identifies a run on every member. A value.
#pragma once

#include <cstdint>
#include <string>

#include "schema/place.h"

namespace tg::daemon {

struct RunIdentity {
  std::uint64_t key = 0;  // drawn by the proposer; in every frame of the run
  std::string id;
  std::string spec;  // canonical job
  std::uint64_t start_timeout_ms = 30'000;
  Per<Seat, std::uint16_t> weights = {};  // all nodes' weights, as the proposer knew them
};

}  // namespace tg::daemon
