// RunIdentity is what identifies a run on every member. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunIdentity {
  std::uint64_t run_key = 0;  // drawn by the proposer at the start and at every resume; in every frame
  std::string id;
  std::string spec;  // canonical job
  std::uint64_t start_timeout_ms = 30'000;
  // All nodes' weights at the preparation: a new run's as the proposer knew them, a resumed one's as recorded.
  Per<Seat, std::uint16_t> weights = {};
  std::vector<std::string> names = {};        // by seat in the run; empty: of a new run
  std::optional<schema::Resume> resume = {};  // a resume, from resume->start once that is chosen
  // The participants until a state is chosen, then the first view's members. By seat; empty: all nodes.
  std::vector<Seat> members = {};
  std::optional<schema::StateId> not_from = {};  // the proposer refuses to resume from this one
  std::uint64_t global_batch = 0;                // a resumed run's, as recorded; 0 = the job's
  std::uint64_t first_weights = 0;               // a joiner's: the sum of the first view's weights

  std::uint32_t lineage() const { return resume ? resume->lineage : 1; }
};

}  // namespace tg::daemon
