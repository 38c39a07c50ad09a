// The members of an exchange, and which of them is this node. The parts of the exchange use it to read frames and to
// name causes. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/membership/view.h"
#include "kernels/base/check.h"
#include "schema/frame/frame.h"
#include "schema/options/node_list.h"
#include "schema/place.h"
#include "schema/step.h"

namespace tg::daemon {

struct Members {
  std::uint64_t run_key = 0;
  View view;
  Rank self;
  Per<Rank, std::string> names;
  std::vector<std::string> segment_names;  // for messages; the statistics' names follow

  // names: the names of all nodes.
  static Members of(std::uint64_t run_key, View view, Seat self, const schema::NodeList& names,
                    std::vector<std::string> segment_names) {
    Members members{run_key, std::move(view), {}, {}, std::move(segment_names)};
    TG_CHECK(members.view.rank(self).has_value(), self.index());
    members.self = *members.view.rank(self);
    for (const Rank rank : places<Rank>(members.count())) members.names.push_back(names[members.view.seat(rank)]);
    return members;
  }

  std::size_t count() const { return view.size(); }
  auto ranks() const { return places<Rank>(count()); }
  // The other members, in a circle that begins after our own rank, so that not all send to the same one first.
  std::vector<Rank> others() const {
    std::vector<Rank> ranks;
    for (std::size_t i = 1; i < count(); ++i) ranks.emplace_back((self.index() + i) % count());
    return ranks;
  }
  Rank senior() const { return *view.rank(view.by_seniority().front()); }  // the member of longest standing
  const std::string& own_name() const { return names[self]; }
  std::string segment(std::size_t index) const {
    return index < segment_names.size() ? segment_names[index] : std::to_string(index);
  }
  schema::FrameHeader header(Round round) const {
    return {run_key, view.number(), static_cast<std::uint32_t>(round.value())};
  }
  schema::Fail cause(Rank about, std::string_view phase, std::string message) const {
    return {ErrorKind::kRunFailed, names[about], std::string(phase), std::move(message)};
  }
};

}  // namespace tg::daemon
