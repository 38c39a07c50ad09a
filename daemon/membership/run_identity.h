// What identifies a run on every member. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunIdentity {
  std::uint64_t key = 0;  // drawn by the proposer, anew with each resume; in every frame of the run
  std::string id;
  std::string spec;  // canonical job
  std::uint64_t start_timeout_ms = 30'000;
  Per<Seat, std::uint16_t> weights = {};  // all nodes' weights, as the proposer knew them
  std::uint64_t global_batch = 0;         // samples of a step, whoever takes part
  std::optional<schema::Resume> resume = {};  // nothing: a new run

  std::uint32_t lineage() const { return resume ? resume->lineage : 1; }
};

}  // namespace tg::daemon
