// ProposalRight is the right to propose a run. The first of the participants grants it to one claim at a time, first
// come, first served: of two starts in the same second one proceeds. The holder proposes in time, gives the right back,
// or loses it with its connection. A proposal uses it up: from then on the run itself keeps others out. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schema/place.h"

namespace tg::daemon {

class ProposalRight {
 public:
  struct Holder {
    std::uint64_t run_key = 0;  // of the run that the right is claimed for
    std::string run_id;
    Seat seat;
  };

  // A granted claim without a proposal is void after this.
  explicit ProposalRight(std::uint64_t timeout_ms) : timeout_ms_(timeout_ms) {}

  const std::optional<Holder>& holder() const { return holder_; }
  bool held_by(std::uint64_t run_key, Seat seat) const;

  // The right must be free, or held by this holder already: then its time begins anew.
  void grant(Holder holder, std::uint64_t now_ms);
  // A proposal has come: false if its sender does not hold the right.
  bool spend(std::uint64_t run_key, Seat seat);
  void give_back(std::uint64_t run_key, Seat seat);
  void on_peer_lost(Seat seat);  // takes back what the peer holds
  void withdraw() { holder_.reset(); }
  void tick(std::uint64_t now_ms);

 private:
  std::uint64_t timeout_ms_;
  std::optional<Holder> holder_;
  std::uint64_t void_at_ms_ = 0;
};

}  // namespace tg::daemon
