// How the members of a view split a batch by their nodes' weights. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/membership/view.h"
#include "engine/dataset.h"
#include "schema/control/control.h"
#include "schema/place.h"

namespace tg::daemon {

inline Per<Rank, std::uint16_t> by_rank(const View& view, const Per<Seat, std::uint16_t>& weights) {
  Per<Rank, std::uint16_t> of_members;
  for (const Rank rank : places<Rank>(view.size())) of_members.push_back(weights[view.seat(rank)]);
  return of_members;
}

// By rank.
inline std::vector<schema::MemberShare> member_shares(const View& view, const Per<Seat, std::string>& names,
                                                      const Per<Seat, std::uint16_t>& weights,
                                                      std::uint64_t global_batch) {
  const std::vector<engine::Share> parts = engine::split(global_batch, by_rank(view, weights));
  std::vector<schema::MemberShare> shares;
  for (const Rank rank : places<Rank>(view.size()))
    shares.push_back({names[view.seat(rank)], static_cast<std::uint64_t>(parts[rank.index()].count)});
  return shares;
}

}  // namespace tg::daemon
