// ViewLinks remembers which connections broke during the current view. Frames were lost with them, so what such a peer
// sends later in this view is dropped, even after it reconnects; the next view makes the loss good. Node's thread.
#pragma once

#include <set>

#include "schema/place.h"

namespace tg::daemon {

class ViewLinks {
 public:
  void begin_view() { broken_.clear(); }
  void mark_broken(Seat peer) { broken_.insert(peer); }
  bool is_intact(Seat peer) const { return !broken_.contains(peer); }

 private:
  std::set<Seat> broken_;
};

}  // namespace tg::daemon
