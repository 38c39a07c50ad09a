// The exchange of one member: the meaning of each frame, what may be done now, and when a round is committed.
//
// Pure: events in (a bucket's gradient is complete, a frame came, a task is done), tasks and actions out. It knows no
// clock, socket or thread and touches no gradient: Workers execute tasks with kernels, and the same two drive real
// runs and the simulator. Owned by one thread.
//
// One round, bucket by bucket:
//   gradient_ready -> Measure tasks -> measured: the local scalers go to all (bucket 0's inside the step frame)
//   N step frames in -> ConfirmState: all members have committed the state that the round begins with
//   N announcements in -> the scalers are settled (CodeRule) -> the bucket is open, its chunks may go (transfers.h):
//       Contribute -> contributed;  Reduce -> total_sent, applied;  Apply -> applied
//   every chunk applied and N step frames in -> CommitRound
//
// A state is confirmed before any chunk of its round can be applied here: a step frame precedes its sender's other
// announcements. So until then the state before it is whole, and the commit can be undone (replica.h).
//
// Small answers are actions at once (take_actions); the heavy ones are tasks that wait until they are asked for
// (next_task), so that frames are never kept waiting behind a bucket.
//
// The announcements also settle the credit of a round: a member that announces round k+1 has taken everything of round
// k. So a peer whose last chunk of a round has come gets no credit for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/exchange/announcements.h"
#include "daemon/exchange/gradient_statistics.h"
#include "daemon/exchange/layout.h"
#include "daemon/exchange/members.h"
#include "daemon/exchange/transfers.h"
#include "daemon/exchange/work.h"
#include "engine/segment.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// The contents of our own step frame, except for the scalers of bucket 0 and the results of the forward pass.
struct LocalRound {
  Round round;
  std::uint32_t rate_bits = 0;
  std::uint32_t flags = 0;
  std::vector<std::uint64_t> digests;  // the committed state's when due: one per segment and statistic
};

class Exchange {
 public:
  // segments and members must outlive it. first_round: the one that it begins with.
  Exchange(const Members& members, const engine::SegmentTable& segments, const CodeRule& rule,
           BatchStatistics statistics = {}, Round first_round = {});

  // Sets the elements of a Measure (GradientStatistics::kSlice by default). Call before the first round.
  void set_slice_elements(std::size_t elements) { statistics_.set_slice_elements(elements); }
  // Other shares of a batch than those of the statistics. Call before the first round.
  void set_shares(Per<Rank, float> shares) { announcements_.set_shares(std::move(shares)); }

  // --- events ---
  // Enters round local.round with this layout (it stays alive and unchanged until the commit). Rounds ascend by one.
  void begin_round(const Layout& layout, LocalRound local);
  // Backward has completed this bucket. Buckets come in order. The results of the forward pass are used with bucket 0:
  // the sum of the losses, and what batch normalizations measured, without padding.
  void on_gradient_ready(std::size_t bucket, double loss_sum, std::vector<float> statistics = {});
  void add_flags(std::uint32_t flags);  // go into our own step frame if it is not sent yet, else into the next one
  // StepFrame, Scalers, Chunk or Credit of this run and view.
  void on_frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
                std::shared_ptr<const void> keep);

  // --- events: what came of tasks ---
  void on_measured(const Measure& work, std::span<const kernels::Statistics> statistics);
  void on_contributed(const Contribute& work, std::size_t payload_bytes);  // the payload has been sent
  void on_total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes);  // by a Reduce
  void on_applied(std::size_t chunk);  // Apply or Reduce is done: the chunk's part of the next state is complete
  void on_bad_payload(std::size_t chunk, Rank from);  // it breaks its format

  std::vector<ExchangeAction> take_actions();
  // What can be done now by this thread, if anything; there may be actions too.
  std::optional<Task> next_task(ThreadRole role);

  // --- state ---
  bool in_round() const { return layout_ != nullptr; }
  bool has_failed() const { return failed_; }   // FailRun has been issued
  Round round() const { return local_.round; }  // in progress, or the last one
  const Scalers& scalers() const { return announcements_.scalers(); }
  std::uint64_t bytes_in_flight() const { return transfers_.bytes_in_flight(); }
  // The union of the members' flags, once every step frame of this round is in.
  std::optional<std::uint32_t> flags() const;
  // Backward has all buckets.
  bool gradient_complete() const { return layout_ != nullptr && ready_buckets_ == layout_->buckets.size(); }
  Waiting waiting() const;

 private:
  friend struct PlainWaiting;  // a simple version of waiting() in the tests
  void announce(LocalBucket local);
  void give_credit(Rank to, std::optional<std::uint64_t> taken_bytes);
  void announcement(Rank from, const schema::FrameBody& body);
  void fail(std::optional<schema::Fail> cause);
  void try_commit();

  const Members& members_;
  Announcements announcements_;
  GradientStatistics statistics_;
  Transfers transfers_;
  std::vector<ExchangeAction> actions_;
  bool failed_ = false;

  const Layout* layout_ = nullptr;
  LocalRound local_;
  std::vector<float> measured_;   // batch normalizations' results, until our own step frame leaves
  std::uint32_t next_flags_ = 0;  // requested after our own step frame had left
  bool step_frame_sent_ = false;
  std::size_t ready_buckets_ = 0, announced_buckets_ = 0;  // completed by backward; measured and announced
  Round next_round_;
};

}  // namespace tg::daemon
