// The scalers of one step: every member's own, and the shared ones, eq. (4): s = max over the members; and the bounds
// for clipping our own gradient.
//
// Written by the thread that owns the Exchange, before a bucket opens. The scalers of an open bucket do not change
// until the commit, so other threads may read them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class Scalers {
 public:
  Scalers(std::size_t members, std::size_t segments)
      : shared_(segments), clips_(segments), own_(members, std::vector<float>(segments)) {}

  void begin_round() {
    std::fill(shared_.begin(), shared_.end(), 0.0f);
    for (std::vector<float>& member : own_) std::fill(member.begin(), member.end(), 0.0f);
  }
  void announced(Rank member, std::size_t segment, float scaler) {
    own_[member][segment] = scaler;
    shared_[segment] = std::max(shared_[segment], scaler);
  }
  void clip_at(std::size_t segment, float bound) { clips_[segment] = bound; }

  float shared(std::size_t segment) const { return shared_[segment]; }
  float of(Rank member, std::size_t segment) const { return own_[member][segment]; }
  float clip(std::size_t segment) const { return clips_[segment]; }  // +inf: none (kernels::Scale::clip)

 private:
  std::vector<float> shared_, clips_;  // by segment
  Per<Rank, std::vector<float>> own_;  // by segment
};

}  // namespace tg::daemon
