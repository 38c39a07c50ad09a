// The scalers of one step, by segment: what every member announced, and what the rule of the code makes of it once all
// have.
//
// Written by the thread that owns the Exchange, before a bucket opens. The scalers of an open bucket do not change
// until the commit, so other threads may read them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "daemon/exchange/code_rule.h"
#include "schema/place.h"

namespace tg::daemon {

class Scalers {
 public:
  Scalers(const CodeRule& rule, Rank self, std::size_t members, std::size_t segments)
      : rule_(rule),
        self_(self),
        members_(members),
        announced_(members * segments),
        agreed_(segments),
        own_(segments) {}

  void begin_round() {
    std::fill(announced_.begin(), announced_.end(), 0.0f);
    std::fill(agreed_.begin(), agreed_.end(), 0.0f);
  }
  void set_clip(std::size_t segment, float bound) { own_[segment].clip = bound; }  // this node's gradient
  void announced(Rank member, std::size_t segment, float scaler) {
    announced_[segment * members_ + member.index()] = scaler;
    if (member == self_) own_[segment].scaler = scaler;
  }
  // Every member has announced this segment.
  void settle(std::size_t segment) {
    agreed_[segment] = rule_.agreed(std::span(announced_).subspan(segment * members_, members_));
  }

  // --- settled segments ---
  kernels::Scale scale(std::size_t segment) const { return rule_.scale(own_[segment], agreed_[segment]); }
  float unit(std::size_t segment) const { return rule_.unit(agreed_[segment]); }  // for a sum of all members' codes
  float unit(Rank member, std::size_t segment) const {  // for one member's code, where each has its own scaler
    return rule_.unit(announced_[segment * members_ + member.index()]);
  }

 private:
  const CodeRule rule_;
  const Rank self_;
  const std::size_t members_;
  std::vector<float> announced_;  // by segment, then rank
  std::vector<float> agreed_;
  std::vector<CodeRule::Own> own_;
};

}  // namespace tg::daemon
