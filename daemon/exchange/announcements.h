// The members' announcements in one round: step frames (with the scalers of bucket 0), scalers of later buckets.
//
// These frames are the gates of the exchange: no member sends a chunk of a bucket before every member announced that
// bucket in that round. So members differ by at most one round. Only announcements of the next round can come before it
// begins here; they are kept. Pure; owned by the thread that owns the Exchange.
//
// Functions that take a peer's frame return the cause that ends the run, if something is wrong with the frame.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/exchange/batch_statistics.h"
#include "daemon/exchange/layout.h"
#include "daemon/exchange/members.h"
#include "daemon/exchange/scalers.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class Announcements {
 public:
  using Violation = std::optional<schema::Fail>;

  Announcements(const Members& members, const CodeRule& rule, BatchStatistics statistics)
      : members_(members),
        batch_statistics_(std::move(statistics)),
        scalers_(rule, members.self, members.count(), members.segment_names.size()) {}

  // The members' shares of a batch, b_r / B, by which their statistics are weighed. Before the first round.
  void set_shares(Per<Rank, float> shares) { batch_statistics_.shares = std::move(shares); }
  // rate_bits: this member's learning rate in the round.
  void begin_round(const Layout& layout, Round round, std::uint32_t rate_bits);
  void set_own_clips(std::size_t bucket,
                     const std::vector<float>& bounds);  // by ternary segment, before it is announced
  Violation on_step_frame(Rank from, const schema::StepFrame& frame);
  Violation on_scalers(Rank from, const schema::Scalers& frame);

  // A frame of the next round, kept until that round begins.
  struct NextRoundFrame {
    Rank from;
    schema::FrameHeader header;
    schema::FrameBody body;
  };
  Violation keep_for_next_round(NextRoundFrame frame);
  std::vector<NextRoundFrame> take_next_round_frames();

  // --- state ---
  bool complete(std::size_t bucket) const { return buckets_[bucket].count == members_.count(); }
  bool announced(std::size_t bucket, Rank rank) const { return buckets_[bucket].by[rank]; }
  // Available once every step frame has come: the union of the members' flags, the sum of their losses in rank order,
  // the mean of their statistics.
  std::optional<std::uint32_t> flags() const;
  double loss_sum() const;
  std::vector<float> statistics() const;
  const BatchStatistics& batch_statistics() const { return batch_statistics_; }
  const Scalers& scalers() const { return scalers_; }

 private:
  struct Bucket {
    Per<Rank, bool> by;
    std::size_t count = 0;
  };
  Violation announce(Rank from, std::size_t bucket, std::uint32_t flags, std::uint32_t non_finite_segment,
                     const std::vector<float>& scalers);
  Violation compare_digests() const;

  const Members& members_;
  BatchStatistics batch_statistics_;
  const Layout* layout_ = nullptr;
  Round round_;
  std::uint32_t rate_bits_ = 0;
  Per<Rank, std::optional<schema::StepFrame>> step_frames_;
  std::vector<Bucket> buckets_;
  Scalers scalers_;
  std::vector<NextRoundFrame> next_round_frames_;
};

}  // namespace tg::daemon
