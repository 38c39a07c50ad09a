// What identifies a run on every member. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunIdentity {
  std::uint64_t key = 0;  // drawn by the proposer, at the start and at every resume; in every frame of the run
  std::string id;
  std::string spec;  // canonical job
  std::uint64_t start_timeout_ms = 30'000;
  // All nodes' weights, that it is prepared with: of a new run as the proposer knew them, of one that goes on as its
  // record has them.
  Per<Seat, std::uint16_t> weights = {};
  std::optional<schema::Resume> resume = {};  // it goes on from resume->start, once that is chosen; nothing: a new run
  // Of its first view; of who is asked to take part, as long as no state is chosen. By seat; empty: all nodes.
  std::vector<Seat> members = {};
  std::optional<schema::StateId> not_from = {};  // the proposer does not go on from this one
  std::uint64_t global_batch = 0;                // of one that goes on, as its record has it; 0 = as the job says

  std::uint32_t lineage() const { return resume ? resume->lineage : 1; }
};

}  // namespace tg::daemon
