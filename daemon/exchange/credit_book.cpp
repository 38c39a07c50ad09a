#include "daemon/exchange/credit_book.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"

namespace tg::daemon {

void CreditBook::begin_step(std::size_t members, std::size_t window, std::size_t every) {
  links_.assign(members, Link{});
  window_ = window;
  every_ = every;
}

bool CreditBook::lasts(const std::vector<Rank>& to) const {
  return std::all_of(to.begin(), to.end(), [this](Rank rank) { return lasts(rank); });
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

bool CreditBook::granted(Rank from, std::uint64_t taken_bytes) {
  Link& link = links_[from];
  if (taken_bytes > link.sent || taken_bytes < link.granted) return false;
  link.granted = taken_bytes;
  return true;
}

std::uint64_t CreditBook::bytes_on_their_way() const {
  std::uint64_t bytes = 0;
  for (const Link& link : links_) bytes += link.sent + link.reserved - link.granted;
  return bytes;
}

std::optional<std::uint64_t> CreditBook::took(Rank from, std::size_t bytes) {
  Link& link = links_[from];
  link.taken += bytes;
  if (link.taken - link.told < every_) return std::nullopt;
  link.told = link.taken;
  return link.taken;
}

double expected_credits(double payloads, double bytes, std::size_t every) {
  if (payloads < 1 || bytes <= 0) return 0;
  const double of_one = std::max(std::ceil(static_cast<double>(every) * payloads / bytes), 1.0);  // payloads
  return std::ceil(payloads / of_one) - 1;
}

}  // namespace tg::daemon
