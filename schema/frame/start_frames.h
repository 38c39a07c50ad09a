// The frames of a start or a resume: the right to propose, the proposal, the others' offers and votes, and the commit
// (daemon/membership/start.h). Values; frame.h, which includes this file, says what is checked.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/choices.h"
#include "schema/described/rule.h"
#include "schema/frame/view_frames.h"
#include "schema/limits.h"
#include "schema/place.h"

namespace tg::schema {

inline std::string weight_error(std::uint16_t weight) {
  return weight == 0 || weight > kMaxWeight ? "a weight of " + std::to_string(weight) : "";
}

// Asks the first of the participating nodes for the right to propose, which one node at a time has.
struct Claim {
  std::string run_id;
};
void fields(Is<Claim> auto& it, auto&& field) { field("run_id", it.run_id, run_id()); }
struct Grant {
  bool granted = false;
  std::string message;  // if refused: names the run that has the right
};
void fields(Is<Grant> auto& it, auto&& field) {
  field("granted", it.granted);
  field("message", it.message, line(kMaxReasonBytes));
}

// The identity of a run's state; states compare in the order in which they were made. States with the same lineage,
// view and step have the same bits, which the digest proves.
struct StateId {
  std::uint32_t lineage = 0;  // number of the run's key, from 1
  std::uint32_t view = 0;
  std::uint64_t step = 0;  // committed steps
  std::uint64_t digest = 0;
  auto operator<=>(const StateId&) const = default;
  bool same_bits(const StateId& other) const { return step == other.step && digest == other.digest; }
};
void fields(Is<StateId> auto& it, auto&& field) {
  field("lineage", it.lineage);
  field("view", it.view);
  field("step", it.step);
  field("digest", it.digest, plain().digest());
}

// A proposal to resume a run. It is sent twice: first to collect the receivers' offers, then with the chosen state.
struct Resume {
  std::uint32_t lineage = 2;               // the lineage of the key in the header
  std::optional<std::uint64_t> from_step;  // the state that the user wants; none = the newest
  bool any_build = false;
  std::optional<StateId> start = {};  // the chosen state
  bool unasked = false;               // the nodes resume the run without a request
  bool operator==(const Resume&) const = default;
};

struct Propose {
  std::string run_id;
  std::string spec;  // canonical job
  Per<Seat, std::uint16_t> weights = {};
  std::optional<Resume> resume = {};        // none = a new run
  std::vector<std::uint32_t> members = {};  // seats, ascending: participants, later the members; empty: all names
  std::vector<std::string> names = {};      // by seat, as in NextView
};

// Lists the complete states of the run on the sender's disk, newest first.
struct Offer {
  std::vector<StateId> states;
  std::string problem;  // why others, or any, are not offered; names the node
  // The newest view of the run that the sender knows, and its members' seats; view 0: none.
  std::uint32_t lineage = 0, view = 0;
  std::vector<std::uint32_t> voters = {};
  std::vector<std::string> names = {};  // that view's
};
void fields(Is<Offer> auto& it, auto&& field) {
  field("states", it.states, list(kMaxStates));
  field("problem", it.problem, line(kMaxReasonBytes));
  field("lineage", it.lineage);
  field("view", it.view);
  field("voters", it.voters, list(kMaxMembers));
  field("names", it.names, list(kMaxMembers, node_name()));
}
inline std::string validation_error(const Offer& it) {
  for (const std::uint32_t voter : it.voters)
    if (voter >= it.names.size()) return "a voter without a name";
  return names_error(it.names);
}

struct Vote {
  bool accepted = false;
  ErrorKind kind = ErrorKind::kFailed;  // if refused
  // If refused, the reason, which names the node. Else the sums of the data's files (engine/data/file_sums.h), or "".
  std::string message;
  std::uint64_t spec_hash = 0, model_hash = 0, data_hash = 0, state_hash = 0;
  double step_seconds = 0;  // the engine's measured forward + backward of the local batch
  std::uint32_t local_batch = 0;
  double link_mbps = 0;                          // payload rate to all peers at once; 0 = not measured
  std::uint16_t workers = 1;                     // threads of the exchange
  std::uint64_t directory = 0, incarnation = 0;  // the sender's, as in ViewMember
  std::uint64_t global_batch = 0;
};
void fields(Is<Vote> auto& it, auto&& field) {
  field("accepted", it.accepted);
  field("kind", it.kind);
  field("message", it.message, line(kMaxReasonBytes));
  field("spec_hash", it.spec_hash);
  field("model_hash", it.model_hash);
  field("data_hash", it.data_hash);
  field("state_hash", it.state_hash);
  field("step_seconds", it.step_seconds);
  field("local_batch", it.local_batch);
  field("link_mbps", it.link_mbps);
  field("workers", it.workers, up_to(kMaxExchangeThreads));
  field("directory", it.directory);
  field("incarnation", it.incarnation);
  field("global_batch", it.global_batch, up_to(kMaxBatch));
}
inline std::string validation_error(const Vote& it) {
  const auto is_measured = [](double value) { return std::isfinite(value) && value >= 0; };
  return !is_measured(it.step_seconds) ? "step seconds is not a measurement"
         : !is_measured(it.link_mbps)  ? "link rate is not a measurement"
         : it.workers == 0             ? "an exchange without threads"
                                       : "";
}

// The proposer's decisions for all members.
struct Commit {
  ExchangeKind exchange = ExchangeKind::kDirect;
  Coding coding = Coding::kRaw;
  std::uint64_t window_bytes = kMaxWindowBytes;            // credit: payload bytes in flight to one peer
  std::uint64_t chunk_parameters = kLargeChunkParameters;  // bound for a chunk, unless the job sets one
  std::vector<ViewMember> members = {};                    // the first view's, by seat
  std::vector<std::string> names = {};                     // the first view's
  bool operator==(const Commit&) const = default;
};
void fields(Is<Commit> auto& it, auto&& field) {
  field("exchange", it.exchange);
  field("coding", it.coding);
  field("window_bytes", it.window_bytes, up_to(kMaxWindowBytes));
  field("chunk_parameters", it.chunk_parameters, up_to(kLargeChunkParameters));
  field("members", it.members, list(kMaxMembers));
  field("names", it.names, list(kMaxMembers, node_name()));
}
inline std::string validation_error(const Commit& it) {
  if (it.window_bytes < kMinWindowBytes) return "a window of " + std::to_string(it.window_bytes) + " bytes";
  if (it.chunk_parameters < kSmallChunkParameters)
    return "chunks of " + std::to_string(it.chunk_parameters) + " parameters";
  return order_error(it.members, it.names);
}

}  // namespace tg::schema
