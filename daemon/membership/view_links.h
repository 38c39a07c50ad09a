// Connections that broke while a view lasts. Frames were lost with them, so nothing more that such a peer sends in this
// view counts, also once it is connected again: what is missing would look like a fault of its own. The next view makes
// good what is lost (view_change.h). Node's thread.
#pragma once

#include <set>

#include "schema/place.h"

namespace tg::daemon {

class ViewLinks {
 public:
  void begin_view() { broken_.clear(); }
  void broke(Seat peer) { broken_.insert(peer); }
  bool whole(Seat peer) const { return !broken_.contains(peer); }

 private:
  std::set<Seat> broken_;
};

}  // namespace tg::daemon
