#include "daemon/membership/proposal_right.h"

#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {

bool ProposalRight::held_by(std::uint64_t run_key, Seat seat) const {
  return holder_ && holder_->run_key == run_key && holder_->seat == seat;
}

void ProposalRight::grant(Holder holder, std::uint64_t now_ms) {
  TG_CHECK(!holder_ || held_by(holder.run_key, holder.seat), holder.run_id);
  holder_ = std::move(holder);
  void_at_ms_ = now_ms + timeout_ms_;
}

bool ProposalRight::spend(std::uint64_t run_key, Seat seat) {
  if (!held_by(run_key, seat)) return false;
  holder_.reset();
  return true;
}

void ProposalRight::give_back(std::uint64_t run_key, Seat seat) {
  if (held_by(run_key, seat)) holder_.reset();
}

void ProposalRight::on_peer_lost(Seat seat) {
  if (holder_ && holder_->seat == seat) holder_.reset();
}

void ProposalRight::tick(std::uint64_t now_ms) {
  if (holder_ && now_ms >= void_at_ms_) holder_.reset();
}

}  // namespace tg::daemon
