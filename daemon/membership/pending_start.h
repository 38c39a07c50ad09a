// PendingStart is a start at this node until it may be proposed: the run is PENDING. It waits for all participants, up
// to its start-timeout, then for the right to propose; if a member leaves meanwhile it waits again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/duration_text.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/proposal_right.h"
#include "daemon/membership/run_identity.h"

namespace tg::daemon {

class PendingStart {
 public:
  static constexpr std::uint64_t kUnrecoverableMs = 1500;
  // token: the waiting client's.
  PendingStart(std::uint64_t token, RunIdentity run, std::uint64_t now_ms)
      : token_(token), run_(std::move(run)), since_ms_(now_ms), deadline_ms_(now_ms + run_.start_timeout_ms) {}

  std::uint64_t token() const { return token_; }
  const RunIdentity& run() const { return run_; }
  std::uint64_t deadline_ms() const { return deadline_ms_; }
  bool claiming() const { return claimed_ms_.has_value(); }  // else it waits for participants

  // The participants, by seat, and the first of them.
  std::vector<Seat> asked(const Peers& peers) const { return run_.members.empty() ? peers.all() : run_.members; }
  Seat granter(const Peers& peers) const { return peers.first_of(asked(peers)); }
  std::vector<Seat> disconnected(const Peers& peers) const {
    std::vector<Seat> seats = asked(peers);
    std::erase_if(seats, [&](Seat seat) { return peers.connected(seat); });
    return seats;
  }

  void claim(std::uint64_t now_ms) { claimed_ms_ = now_ms; }
  void wait_again() { claimed_ms_.reset(); }
  // Whether the problem has lasted long enough to give up.
  bool is_unrecoverable(std::uint64_t now_ms) const { return now_ms >= since_ms_ + kUnrecoverableMs; }
  // Why the start has failed by now, "" if it has not.
  std::string overdue(const Peers& peers, std::uint64_t claim_timeout_ms, std::uint64_t now_ms) const {
    if (now_ms < (claimed_ms_ ? *claimed_ms_ + claim_timeout_ms : deadline_ms_)) return "";
    if (claimed_ms_)
      return peers.name(granter(peers)) + " did not grant the right to start a run within " +
             seconds_text(claim_timeout_ms) + "; is it overloaded?";
    const std::vector<Seat> missing = disconnected(peers);
    return peers.names_of(missing) + " did not connect within " + seconds_text(run_.start_timeout_ms) +
           (missing.size() == 1 ? "; is it running and reachable?" : "; are they running and reachable?");
  }

 private:
  std::uint64_t token_;
  RunIdentity run_;
  std::uint64_t since_ms_, deadline_ms_;
  std::optional<std::uint64_t> claimed_ms_;  // when the claim was sent
};

}  // namespace tg::daemon
