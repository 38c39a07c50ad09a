// What the members offer to go on from, as the proposer collects it, its own among it. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/choose_state.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

class Offers {
 public:
  explicit Offers(Per<Seat, std::string> names) : names_(std::move(names)), offers_(names_.size()) {}

  // Of these nodes, by seat.
  void begin(std::vector<Seat> asked) {
    asked_ = std::move(asked);
    offers_.assign(names_.size(), std::nullopt);
  }
  // A seat's first offer counts; false for a later one.
  bool take(Seat from, schema::Offer offer) {
    if (offers_[from]) return false;
    offers_[from] = std::move(offer);
    return true;
  }
  const std::optional<schema::Offer>& of(Seat seat) const { return offers_[seat]; }
  std::vector<Seat> missing() const {
    std::vector<Seat> seats;
    for (const Seat seat : asked_)
      if (!offers_[seat]) seats.push_back(seat);
    return seats;
  }
  // Once none is missing.
  ChosenState choose(const std::string& run_id, const schema::Resume& asked, const Resuming& how) const {
    Per<Seat, schema::Offer> all(names_.size());
    for (const Seat seat : asked_) all[seat] = offers_[seat].value();
    return choose_state(run_id, asked, asked_, all, names_, how);
  }

 private:
  Per<Seat, std::string> names_;
  std::vector<Seat> asked_;
  Per<Seat, std::optional<schema::Offer>> offers_;
};

}  // namespace tg::daemon
