// Credit between this member and each other one, in payload bytes of the round in progress: what may still be sent to
// each, and when to tell a peer what was taken from it. A member that announces the next round has taken everything of
// this one, so the book starts afresh with every round. Pure; owned by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class CreditBook {
 public:
  // window: bytes that may be on their way to one peer, of totals more; payloads that are being made may overshoot it.
  // every: a peer is told after so many.
  void begin_round(std::size_t members, std::size_t window, std::size_t every);

  // --- what we send ---
  bool has_credit(Rank to) const { return in_flight(to) < window_; }
  bool has_credit(const std::vector<Rank>& to) const;  // for all of them
  // Whether a total may go to all peers: together they have less than a window each in flight to them, and none of them
  // has schema::kMaxWindowsOfTotals.
  bool has_credit_for_totals() const;
  // Whether totals wait for this peer.
  bool totals_window_full(Rank peer) const { return in_flight(peer) >= window_of_totals(); }
  // A payload of about `expected` bytes is being made; sent() gives its real size once it has left.
  void reserve(const std::vector<Rank>& to, std::size_t expected);
  void sent(const std::vector<Rank>& to, std::size_t bytes, std::size_t expected);
  // The peer says how many bytes it took in this round. False if that cannot be: more than were sent, or fewer than it
  // said before.
  bool on_granted(Rank from, std::uint64_t taken_bytes);
  std::uint64_t sent_to(Rank to) const { return links_[to].sent; }
  // As far as credit has come; payloads being made count.
  std::uint64_t in_flight(Rank to) const { return links_[to].sent + links_[to].reserved - links_[to].granted; }
  std::uint64_t bytes_in_flight() const;  // to all peers

  // --- what we are sent ---
  // The total taken from the peer, if it should be told now.
  std::optional<std::uint64_t> on_taken(Rank from, std::size_t bytes);

 private:
  struct Link {
    std::uint64_t sent = 0, reserved = 0, granted = 0;
    std::uint64_t taken = 0, told = 0;
  };
  std::uint64_t window_of_totals() const;

  Per<Rank, Link> links_;
  std::size_t window_ = 0, every_ = 0;
};

}  // namespace tg::daemon
