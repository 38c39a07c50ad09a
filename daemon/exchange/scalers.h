// The scalers of one step: every member's own, and the shared ones, eq. (4): s = max over the members.
//
// Written by the thread that owns the Exchange, before a bucket opens. Those of an open bucket stay as they are until
// the commit: other threads may read these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "daemon/membership/membership.h"

namespace tg::daemon {

class Scalers {
 public:
  Scalers(std::size_t members, std::size_t segments) : shared_(segments), own_(members, shared_) {}

  void begin_step() {
    std::fill(shared_.begin(), shared_.end(), 0.0f);
    for (std::vector<float>& member : own_) std::fill(member.begin(), member.end(), 0.0f);
  }
  void announced(Rank member, std::size_t segment, float scaler) {
    own_[member][segment] = scaler;
    shared_[segment] = std::max(shared_[segment], scaler);
  }

  float shared(std::size_t segment) const { return shared_[segment]; }
  float of(Rank member, std::size_t segment) const { return own_[member][segment]; }

 private:
  std::vector<float> shared_;            // by segment
  std::vector<std::vector<float>> own_;  // by rank and segment
};

}  // namespace tg::daemon
