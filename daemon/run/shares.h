// The members' shares of a batch in a view, by their weights. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/membership/view.h"
#include "engine/dataset.h"
#include "schema/control/control.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

// Returns the shares by rank.
inline std::vector<schema::MemberShare> member_shares(const View& view, const schema::NodeList& names,
                                                      std::uint64_t global_batch) {
  const std::vector<engine::Share> parts = engine::split(global_batch, view.weights());
  std::vector<schema::MemberShare> shares;
  for (const Rank rank : places<Rank>(view.size()))
    shares.push_back({names[view.seat(rank)], static_cast<std::uint64_t>(parts[rank.index()].count)});
  return shares;
}

}  // namespace tg::daemon
