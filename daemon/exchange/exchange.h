// The exchange of one member: which frame means what, what may be done now, and when a step is committed.
//
// Pure: events in (a bucket's gradient is ready, a frame came, so many bytes were sent), actions out (send, contribute,
// reduce, apply, commit). It knows no clock, socket or thread and touches no gradient: Workers carry the work out with
// kernels, and the same two drive real runs and the simulator. Owned by one thread.
//
// One step, bucket by bucket:
//   bucket ready -> its local scalers go to all (bucket 0's inside the step frame)
//   N scaler frames in -> eq. (4): s = max -> the bucket is open, its chunks may go:
//       direct   contribute: codes to all;      N-1 contributions in -> reduce: sum all, apply
//       sharded  contribute: codes to the owner; owner: N-1 contributions in -> reduce: sum all, sums to all, apply
//                                                others: the total is in -> apply
//   every chunk applied and N step frames in -> commit
//
// Small answers are actions at once (take_actions); the heavy ones, contribute, reduce and apply, are work that waits
// until it is asked for (next_work), so that frames are never kept waiting behind a bucket. Works that were handed out
// do not depend on each other: several may be under way at once, and end in any order.
//   - a contribution or a total goes only where the credit lasts: at most plan.window_bytes on their way to a peer;
//   - a total that came is applied before anything else: its memory is free then;
//   - the bucket that is ready last goes first: the next forward pass begins with its segments;
//   - in a bucket reductions go before contributions. A total needs credit with every peer at once, so that on a busy
//     link most contributions leave first all the same. Frames that wait for each peer by themselves were tried: no
//     faster with four members, and with eight the switch's ports dropped what met there.
// Contributions that came are held until all are there, then summed in rank order in one go, in cache.
//
// The scaler frames are gates: nobody sends a chunk of a bucket before every member announced that bucket in that step.
// So members differ by at most one step, and what can arrive early is bounded: step and scaler frames of the next step,
// nothing more. They also settle the credit of a step: who announces step k+1 has taken everything of step k. So a peer
// whose last chunk of a step has come is not told that it was taken.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemon/exchange/credit_book.h"
#include "daemon/exchange/plan.h"
#include "daemon/exchange/scalers.h"
#include "daemon/membership/view.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// A chunk that came in, with whatever keeps its payload alive.
struct ReceivedChunk {
  schema::Chunk chunk;
  std::shared_ptr<const void> keep;
};

// Work.
struct Contribute {  // ternarize, encode and send the own part of a chunk; direct: keep its codes for Reduce
  std::size_t chunk = 0;
  std::vector<Rank> to;
};
struct Reduce {  // sum all members' contributions in rank order, send the total, apply it
  std::size_t chunk = 0;
  std::vector<std::optional<ReceivedChunk>> contributions;  // by rank; the own one is empty
  std::vector<Rank> to;                                     // who wants the total
};
struct Apply {  // the owner's total -> optimizer -> new parameters
  std::size_t chunk = 0;
  Rank owner = 0;
  ReceivedChunk total;
};
using ExchangeWork = std::variant<Contribute, Reduce, Apply>;

// Actions, to be carried out in order.
struct SendToMembers {
  std::vector<Rank> to;
  schema::FrameHeader header;
  schema::FrameBody body;
};
struct CommitStep {
  std::uint64_t step = 0;
  std::uint32_t flags = 0;  // union over members (schema::StepFlags)
  double loss_sum = 0;      // over the global batch, added in rank order
};
struct FailRun {
  schema::Fail cause;
};
using ExchangeAction = std::variant<SendToMembers, CommitStep, FailRun>;

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
    std::uint32_t view = View::kFirst;
    std::vector<std::string> segment_names;  // for messages
  };
  explicit Exchange(Options options);

  // --- events ---
  // Enters step local.step with this plan (it stays alive and unchanged until the commit). Steps ascend by one.
  void begin_step(const Plan& plan, LocalStep local);
  // loss_sum is used with bucket 0. Buckets come in order.
  void bucket_ready(std::size_t bucket, LocalBucket local, double loss_sum);
  void add_flags(std::uint32_t flags);  // joins the own step frame if that is not sent yet, else the next one
  // StepFrame, Scalers, Chunk or Credit of this run and view.
  void frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
             std::shared_ptr<const void> keep);

  // --- events: what came of work that was handed out ---
  // Contribute is done and its payload has left.
  void contributed(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes);
  // Reduce has made its total, and that has left.
  void total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes);
  // Apply or Reduce is done: the chunk's part of the next state is there.
  void applied(std::size_t chunk);
  // A payload breaks its format.
  void bad_payload(std::size_t chunk, Rank from);

  std::vector<ExchangeAction> take_actions();
  // The next piece of work that the credit allows. Nothing if there is none now.
  std::optional<ExchangeWork> next_work();
  bool has_totals() const { return !to_apply_.empty(); }  // to be applied

  // --- state ---
  bool in_step() const { return plan_ != nullptr; }
  const Plan* plan() const { return plan_; }  // of the step, while in it
  bool broken() const { return failed_; }     // FailRun has been said
  std::uint64_t step() const { return local_.step; }
  const Scalers& scalers() const { return scalers_; }
  std::uint64_t bytes_on_their_way() const;  // to all peers, as far as credit frames have told
  // Half of what may be on its way is: there is time for other work than sending.
  bool link_is_busy() const {
    return plan_ != nullptr && 2 * bytes_on_their_way() >= plan_->window_bytes * (plan_->members - 1);
  }
  // The union of the members' flags, once every step frame of this step is in.
  std::optional<std::uint32_t> flags() const;
  bool announced_all() const { return ready_buckets_ == (plan_ ? plan_->buckets.size() : 0); }
  // Whom the next progress depends on, in words of schema::Phase; empty while only local work is missing. Work that was
  // handed out is not looked at: whoever asks knows of it.
  //
  // late, evidence for a straggler (daemon/run/straggler.h): who keeps a bucket closed while no link is busy
  // with what is theirs. Either those of `ranks` of whom nothing is missing but the announcement, while this member has
  // announced all its buckets; or this member alone, while it has not and all others have announced the bucket that it
  // is at.
  struct Waiting {
    schema::Phase phase = schema::Phase::kIdle;
    std::vector<Rank> ranks;
    std::vector<Rank> late;
  };
  Waiting waiting() const;
  std::uint64_t stale_frames() const { return stale_frames_; }

 private:
  friend struct PlainWaiting;  // the test's dumb twin of waiting()
  struct Bucket {
    std::vector<bool> announced;  // by rank
    std::size_t announced_count = 0;
    bool open = false;
    std::vector<std::size_t> early;  // contributions that came before the last announcement did, by rank
  };
  // Chunks of open buckets that have not come from a member.
  struct Owed {
    std::size_t contributions = 0, totals = 0;
  };
  struct ChunkState {
    std::vector<std::optional<ReceivedChunk>> held;  // contributions that came, by rank
    std::size_t missing = 0;                         // contributions of other members that have not come
    bool contributed = false;                        // the own part is where it has to be
    bool reducing = false;                           // queued, or handed out
    bool total_came = false;
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
  void on_credit(Rank from, const schema::Credit& credit);
  void open_bucket(std::size_t bucket);
  void count_owed(std::size_t bucket);
  void count_frames();
  void reduce_if_complete(std::size_t index);
  std::optional<Reduce> next_reduce(std::size_t bucket);
  std::optional<Contribute> next_contribution(std::size_t bucket);
  std::vector<Rank> receivers(const ChunkPlan& chunk) const;
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
  std::vector<Owed> owed_;                      // by rank
  std::vector<std::size_t> to_come_, to_send_;  // chunk frames of the step from and to others, by rank
  std::size_t applied_count_ = 0;
  Scalers scalers_;
  CreditBook credit_;
  std::vector<std::deque<std::size_t>> to_contribute_, to_reduce_;  // chunks, by bucket
  std::deque<Apply> to_apply_;

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
