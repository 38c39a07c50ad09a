// The exchange of one member: which frame means what, what may be done now, and when a step is committed.
//
// Pure: events in (a bucket's gradient is ready, a frame came), actions out (send, contribute, accumulate, apply,
// commit). It knows no clock, socket or thread and touches no gradient: a Worker carries the actions out with kernels,
// and the same two drive real runs and the simulator. Owned by one thread.
//
// One step, bucket by bucket (DESIGN section 3, "the life of one gradient"):
//   bucket ready -> its local scalers go to all (bucket 0's inside the step frame)
//   N scaler frames in -> eq. (4): s = max -> contribute every chunk of the bucket:
//       direct   codes to all;      N contributions in -> apply the own sums
//       sharded  codes to the owner; owner: N contributions in -> exact sums to all, apply; others: total in -> apply
//   every chunk applied and N step frames in -> commit
//
// The scaler frames are gates: nobody sends a chunk of a bucket before every member announced that bucket in that step.
// So members differ by at most one step, and what can arrive early is bounded: step and scaler frames of the next step,
// nothing more. Codes may be added in any order (integers); floats are added in rank order, the own part in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemon/exchange/plan.h"
#include "daemon/membership/membership.h"
#include "schema/frame.h"

namespace tg::daemon {

// A chunk that came in, with whatever keeps its payload alive.
struct ReceivedChunk {
  schema::Chunk chunk;
  std::shared_ptr<const void> keep;
};

// Actions, to be carried out in order. Send uses the type of membership.h.
struct Contribute {  // ternarize, encode and send the own part of a chunk; keep its codes for Accumulate
  std::size_t chunk = 0;
  std::vector<Rank> to;  // empty: only the own sums need it
};
struct Accumulate {  // add rank's contribution to the chunk's sums; the own one when `received` is empty
  std::size_t chunk = 0;
  Rank rank = 0;
  bool first = false;  // the sums start from zero here
  std::optional<ReceivedChunk> received;
};
struct SendTotal {  // encode the chunk's sums and send them
  std::size_t chunk = 0;
  std::vector<Rank> to;
};
struct Apply {  // sums -> optimizer -> new parameters; the own sums when `received` is empty
  std::size_t chunk = 0;
  Rank rank = 0;
  std::optional<ReceivedChunk> received;
};
struct CommitStep {
  std::uint64_t step = 0;
  std::uint32_t flags = 0;  // union over members (schema::StepFlags)
  double loss_sum = 0;      // over the global batch, added in rank order
};
struct FailRun {
  schema::Fail cause;
};
using ExchangeAction = std::variant<SendFrame, Contribute, Accumulate, SendTotal, Apply, CommitStep, FailRun>;

// What the own node knows of one bucket when its gradient is complete.
struct LocalBucket {
  std::vector<float> scalers;  // of plan.buckets[b].ternary_segments, in order: eq. (2) after clipping
  std::optional<std::size_t> non_finite_segment;
};

// What the own step frame says besides the scalers of bucket 0.
struct LocalStep {
  std::uint64_t step = 0;
  std::uint32_t rate_bits = 0;
  std::uint32_t flags = 0;
  std::vector<std::uint64_t> digests;  // of the committed state, one per segment, when due
};

class Exchange {
 public:
  struct Options {
    std::vector<std::string> names;  // of the members, by rank
    Rank self = 0;
    std::uint64_t run_key = 0;
    std::uint32_t view = Membership::kView;
    std::vector<std::string> segment_names;  // for messages
  };
  explicit Exchange(Options options);

  // --- events ---
  // Enters step local.step with this plan (it stays alive and unchanged until the commit). Steps ascend by one.
  void begin_step(const Plan& plan, LocalStep local);
  // loss_sum is used with bucket 0. Buckets come in order.
  void bucket_ready(std::size_t bucket, LocalBucket local, double loss_sum);
  void add_flags(std::uint32_t flags);  // joins the own step frame if that is not sent yet, else the next one
  // StepFrame, Scalers or Chunk of this run and view.
  void frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
             std::shared_ptr<const void> keep);
  // The worker found that a payload breaks its format.
  void bad_payload(std::size_t chunk, Rank from);

  std::vector<ExchangeAction> take_actions();

  // --- state ---
  bool in_step() const { return plan_ != nullptr; }
  std::uint64_t step() const { return local_.step; }
  float scaler(std::size_t segment) const { return shared_scalers_[segment]; }  // eq. (4), valid from Contribute on
  bool announced_all() const { return ready_buckets_ == (plan_ ? plan_->buckets.size() : 0); }
  // Whom the next progress depends on, in words of schema::Phase; empty while only local work is missing.
  struct Waiting {
    schema::Phase phase = schema::Phase::kIdle;
    std::vector<Rank> ranks;
  };
  Waiting waiting() const;
  std::uint64_t stale_frames() const { return stale_frames_; }

 private:
  struct Bucket {
    std::vector<bool> announced;  // by rank
    std::size_t announced_count = 0;
    bool open = false;
  };
  struct ChunkState {
    std::vector<bool> seen;  // contributions that arrived or were made, by rank
    std::size_t seen_count = 0;
    std::size_t accumulated = 0;                     // contributions handed to the worker
    std::vector<std::optional<ReceivedChunk>> held;  // float contributions that wait for their turn, by rank
    bool applied = false;
  };

  std::size_t members() const { return options_.names.size(); }
  std::vector<Rank> others() const;  // staggered: self+1, self+2, ... mod N
  schema::FrameHeader header() const;
  void send(schema::FrameBody body);
  void fail(Rank about, std::string_view phase, std::string message);
  void on_step_frame(Rank from, const schema::StepFrame& frame);
  void on_scalers(Rank from, std::size_t bucket, std::uint32_t flags, std::uint32_t non_finite_segment,
                  const std::vector<float>& scalers);
  void on_chunk(Rank from, const schema::Chunk& chunk, std::shared_ptr<const void> keep);
  void on_contribution(Rank from, std::size_t index, ReceivedChunk received);
  void open_bucket(std::size_t bucket);
  void contribute(std::size_t index);
  void advance_sums(std::size_t index);
  void complete_sums(std::size_t index);
  void applied(std::size_t index);
  void check_digests();
  void try_commit();

  const Options options_;
  std::vector<ExchangeAction> actions_;
  bool failed_ = false;

  const Plan* plan_ = nullptr;
  LocalStep local_;
  std::uint32_t next_flags_ = 0;  // asked for after the own step frame had left
  bool step_frame_sent_ = false;
  std::size_t ready_buckets_ = 0;
  std::vector<std::optional<schema::StepFrame>> step_frames_;  // by rank
  std::size_t step_frame_count_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<ChunkState> chunks_;
  std::size_t applied_count_ = 0;
  std::vector<float> shared_scalers_;  // by segment

  struct Early {
    Rank from;
    schema::FrameHeader header;
    schema::FrameBody body;
  };
  std::vector<Early> early_;  // step and scaler frames of the next step
  std::uint64_t next_step_ = 0;
  std::uint64_t stale_frames_ = 0;
};

}  // namespace tg::daemon
