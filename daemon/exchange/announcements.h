// The members' announcements in one step: step frames (with the scalers of bucket 0), scalers of later buckets.
//
// These frames are the gates of the exchange: nobody sends a chunk of a bucket before every member announced that
// bucket in that step. So members differ by at most one step. Only announcements of the next step can come before it
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
  using Wrong = std::optional<schema::Fail>;

  Announcements(const Members& members, BatchStatistics statistics)
      : members_(members),
        batch_statistics_(std::move(statistics)),
        scalers_(members.count(), members.segment_names.size()) {}

  // rate_bits: this member's learning rate in the step.
  void begin_step(const Layout& layout, std::uint64_t step, std::uint32_t rate_bits);
  void clip_own(std::size_t bucket, const std::vector<float>& bounds);  // by ternary segment, before it is announced
  Wrong take(Rank from, const schema::StepFrame& frame);
  Wrong take(Rank from, const schema::Scalers& frame);

  // A frame of the next step, kept until that step begins.
  struct NextStepFrame {
    Rank from;
    schema::FrameHeader header;
    schema::FrameBody body;
  };
  Wrong keep(NextStepFrame frame);
  std::vector<NextStepFrame> take_next_step_frames();

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
  Wrong announce(Rank from, std::size_t bucket, std::uint32_t flags, std::uint32_t non_finite_segment,
                 const std::vector<float>& scalers);
  Wrong compare_digests() const;

  const Members& members_;
  const BatchStatistics batch_statistics_;
  const Layout* layout_ = nullptr;
  std::uint64_t step_ = 0;
  std::uint32_t rate_bits_ = 0;
  Per<Rank, std::optional<schema::StepFrame>> step_frames_;
  std::vector<Bucket> buckets_;
  Scalers scalers_;
  std::vector<NextStepFrame> next_step_frames_;
};

}  // namespace tg::daemon
