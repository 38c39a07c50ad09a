// The votes on a proposal, as its proposer collects them, the own one among them: whose are missing, why they do not
// agree, and what they decide for all. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/run_identity.h"
#include "engine/data/file_sums.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

class Votes {
 public:
  explicit Votes(Per<Seat, std::string> names) : names_(std::move(names)), votes_(names_.size()) {}

  void clear() {
    votes_.assign(names_.size(), std::nullopt);
    data_names_ = nullptr;
  }
  // The names of the own data's files. Until they are known nobody's data are compared: they could not be named.
  void know(engine::EachName data_names) { data_names_ = std::move(data_names); }
  // A seat's first vote counts. A cause if the proposal has failed with it: its sender refuses, or members would not
  // train the same thing; it names both nodes and both values.
  std::optional<schema::Fail> take(Seat from, const schema::Vote& vote);
  std::vector<Seat> missing() const;
  // Once none is missing. The members of the first view weigh as much as the run says, or, where a new run's job splits
  // the batch by speed, as they have measured (split_by_speed.h). An error if the run's spec is no job.
  Result<Choice> decide(const RunIdentity& run) const;

 private:
  std::vector<schema::ViewMember> members(const Per<Seat, std::uint16_t>& weights) const;
  std::optional<schema::Fail> difference() const;
  std::string differing_files(Seat one, Seat other) const;

  Per<Seat, std::string> names_;
  Per<Seat, std::optional<schema::Vote>> votes_;
  engine::EachName data_names_;
};

}  // namespace tg::daemon
