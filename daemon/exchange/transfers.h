// The chunks of one round: what has arrived, what is still to be sent, summed and applied, and which member waits for
// which.
//
//   direct   contribute: codes to all;      N-1 contributions in -> reduce: sum all, apply
//   sharded  contribute: codes to the owner; owner: N-1 contributions in -> reduce: sum all, sums to all, apply
//                                            others: the total is in -> apply
//
// Which task goes next:
//   - a contribution goes if less than layout.window_bytes are in flight to its receiver;
//   - a total goes to all, while less than one window for each peer is in flight to all together, and less than
//     schema::kMaxWindowsOfTotals to any one. So a peer that is behind for a moment does not hold up the others
//     (AlexNet, eight members of two cores each, 1 Gbit/s: 248 ms a step, 257 if one full window stops it);
//   - a total that has come is applied before anything else, which frees its memory;
//   - the bucket that is ready last goes first: the next forward pass begins with its segments;
//   - within a bucket reductions go before contributions. The windows are soon full of totals, so that on a busy link
//     most contributions still leave first. A queue of frames for each peer was tried: it was no faster with four
//     members, and with eight the switch's ports dropped frames.
// Contributions are held until all have come, then summed in rank order in one go, in cache. Credit is given for them
// as they come, since there is room for all of them; for a total when it is handed out to be applied.
// Pure; owned by the thread that owns the Exchange.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/exchange/credit_book.h"
#include "daemon/exchange/layout.h"
#include "daemon/exchange/members.h"
#include "daemon/exchange/work.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// The members that the next progress depends on, with the schema::Phase; none while only local work is missing.
struct Waiting {
  schema::Phase phase = schema::Phase::kIdle;
  std::vector<Rank> ranks;
};

class Transfers {
 public:
  using Violation = std::optional<schema::Fail>;  // why a peer's frame ends the run

  explicit Transfers(const Members& members) : members_(members) {}

  void begin_round(const Layout& layout, Round round);
  // All members have announced the bucket: its chunks may go.
  void open(std::size_t bucket);

  // --- frames ---
  struct Taken {
    Violation wrong;
    std::optional<std::uint64_t> credit = {};  // bytes taken from this peer, if it should be told now
  };
  Taken on_chunk(Rank from, const schema::Chunk& chunk, std::shared_ptr<const void> keep);
  Violation on_credit(Rank from, const schema::Credit& credit);

  // --- tasks ---
  // The next one that the credit allows: Contribute, Reduce or Apply.
  std::optional<Task> next();
  // This Apply was handed out: its total is taken now. While it waits, it counts as in flight.
  std::optional<std::uint64_t> handed_out(const Apply& apply);  // as Taken::credit, of the owner
  bool has_totals() const { return !to_apply_.empty(); }        // to be applied
  // A Contribute's payload has left.
  void on_contributed(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes);
  // A Reduce has made its total, and that has left.
  void on_total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes);
  // Apply or Reduce is done: the chunk's part of the next state is there.
  void on_applied(std::size_t chunk);

  // --- state ---
  bool all_applied() const { return applied_count_ == chunks_.size(); }
  std::uint64_t bytes_in_flight() const { return credit_.bytes_in_flight(); }  // as far as credit has told
  // Half of what may be in flight is: there is time for work other than sending.
  bool link_is_busy() const { return 2 * bytes_in_flight() >= layout_->window_bytes * (members_.count() - 1); }
  // What open buckets wait for. Work that was handed out is not considered: the caller knows about it.
  Waiting waiting() const;

 private:
  friend struct PlainWaiting;  // a simple version of waiting() in the tests
  struct Bucket {
    bool open = false;
    Per<Rank, std::size_t> before_open;  // contributions that came
    std::deque<std::size_t> to_contribute, to_reduce;
  };
  struct ChunkState {
    Per<Rank, std::optional<ReceivedChunk>> held;  // contributions that came
    std::size_t missing = 0;                       // contributions of other members that have not come
    bool contributed = false;                      // our own part has been sent or stored
    bool reducing = false;                         // queued, or handed out
    bool total_came = false;
    bool applied = false;
  };
  // Counts for one other member, updated when a round and its buckets begin and as chunks come and go, because
  // waiting() is called each time a node has nothing else to do.
  struct Peer {
    std::size_t contributions_owed = 0, totals_owed = 0;  // still missing in open buckets
    std::size_t to_come = 0;                              // chunk frames of the round still to come
    std::size_t to_contribute = 0;                        // chunks that are queued for it
  };

  // True where the chunk is summed on this member.
  bool is_summed_here(const ChunkLayout& chunk) const { return !layout_->sharded() || chunk.owner == members_.self; }
  std::vector<Rank> receivers(std::size_t chunk) const;
  bool blocks_our_chunks(Rank peer) const;
  void count_frames();
  void count_owed(std::size_t bucket);
  std::optional<std::uint64_t> on_taken(Rank from, std::size_t bytes);
  void reduce_if_complete(std::size_t chunk);
  std::optional<Task> next_reduce(std::size_t bucket);
  std::optional<Task> next_contribution(std::size_t bucket);
  Violation violation_of(Rank from, const schema::Chunk& chunk) const;

  const Members& members_;
  const Layout* layout_ = nullptr;
  std::vector<Bucket> buckets_;
  std::vector<ChunkState> chunks_;
  Per<Rank, Peer> peers_;
  std::deque<Apply> to_apply_;
  std::size_t applied_count_ = 0;
  CreditBook credit_;
};

}  // namespace tg::daemon
