// Votes collects the votes on a proposal at its proposer, its own included: which are missing, how they differ, and
// what they decide for all. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/run_identity.h"
#include "daemon/membership/view.h"
#include "engine/data/file_sums.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

class Votes {
 public:
  explicit Votes(schema::NodeList names) : names_(std::move(names)), votes_(names_.kMaxNodes) {}

  void clear() {
    votes_.assign(votes_.size(), std::nullopt);
    data_names_ = nullptr;
  }
  // The names of this node's data files. Data are compared only once they are known, to name what differs.
  void know(engine::EachName data_names) { data_names_ = std::move(data_names); }
  // A seat's first vote counts. A cause if the proposal has failed with it: its sender refuses, or members would not
  // train the same thing; it names both nodes and both values.
  std::optional<schema::Fail> take(Seat from, const schema::Vote& vote);
  std::vector<Seat> missing() const;
  // Once none of the view's members is missing. The members' weights are the run's or, for a new run with `split =
  // speed`, follow from their votes (split_by_speed.h). An error if the run's spec is no job.
  Result<ExchangeChoice> decide(const RunIdentity& run, const View& view) const;

 private:
  std::optional<schema::Fail> difference() const;
  std::string differing_files(Seat one, Seat other) const;

  schema::NodeList names_;
  Per<Seat, std::optional<schema::Vote>> votes_;
  engine::EachName data_names_;
};

}  // namespace tg::daemon
