#include "daemon/exchange/credit_book.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"
#include "schema/limits.h"

namespace tg::daemon {

void CreditBook::begin_round(std::size_t members, std::size_t window, std::size_t every) {
  links_.assign(members, Link{});
  window_ = window;
  every_ = every;
}

bool CreditBook::has_credit(const std::vector<Rank>& to) const {
  return std::all_of(to.begin(), to.end(), [this](Rank rank) { return has_credit(rank); });
}

bool CreditBook::has_credit_for_totals() const {
  const std::uint64_t window = window_of_totals();
  return std::ranges::all_of(links_.places(), [&](Rank peer) { return in_flight(peer) < window; });
}

// Once all windows together are used up, at least one peer has its whole window in flight.
std::uint64_t CreditBook::window_of_totals() const {
  const bool used_up = bytes_in_flight() >= window_ * (links_.size() - 1);
  return used_up ? window_ : schema::kMaxWindowsOfTotals * window_;
}

void CreditBook::reserve(const std::vector<Rank>& to, std::size_t expected) {
  for (const Rank rank : to) links_[rank].reserved += expected;
}

void CreditBook::sent(const std::vector<Rank>& to, std::size_t bytes, std::size_t expected) {
  for (const Rank rank : to) {
    TG_CHECK(links_[rank].reserved >= expected, rank.index());
    links_[rank].reserved -= expected;
    links_[rank].sent += bytes;
  }
}

bool CreditBook::on_granted(Rank from, std::uint64_t taken_bytes) {
  Link& link = links_[from];
  if (taken_bytes > link.sent || taken_bytes < link.granted) return false;
  link.granted = taken_bytes;
  return true;
}

std::uint64_t CreditBook::bytes_in_flight() const {
  std::uint64_t bytes = 0;
  for (const Rank rank : links_.places()) bytes += in_flight(rank);
  return bytes;
}

std::optional<std::uint64_t> CreditBook::on_taken(Rank from, std::size_t bytes) {
  Link& link = links_[from];
  link.taken += bytes;
  if (link.taken - link.told < every_) return std::nullopt;
  link.told = link.taken;
  return link.taken;
}

}  // namespace tg::daemon
