// Offers collects the states that the participants of a resume offer to the proposer, its own included. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/choose_state.h"
#include "schema/frame/frame.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

class Offers {
 public:
  explicit Offers(schema::NodeList names) : names_(std::move(names)), offers_(names_.kMaxNodes) {}

  // asked: by seat.
  void begin(std::vector<Seat> asked) {
    participants_ = std::move(asked);
    offers_.assign(offers_.size(), std::nullopt);
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
    for (const Seat seat : participants_)
      if (!offers_[seat]) seats.push_back(seat);
    return seats;
  }
  // Once none is missing.
  ChosenState choose(const std::string& run_id, const schema::Resume& asked, const ResumePolicy& how) const {
    Per<Seat, schema::Offer> all(offers_.size());
    for (const Seat seat : participants_) all[seat] = offers_[seat].value();
    return choose_state(run_id, asked, participants_, all, names_, how);
  }

 private:
  schema::NodeList names_;
  std::vector<Seat> participants_;
  Per<Seat, std::optional<schema::Offer>> offers_;
};

}  // namespace tg::daemon
