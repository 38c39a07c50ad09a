// The rule of a gradient code, one segment at a time. TernGrad's is
//
//   statistics -> own      what a member announces: its scaler, eq. (2), of the gradient clipped by eq. (21)
//   announced  -> agreed   what all members come to: eq. (4), the largest
//   scaler     -> scale    how this node's gradient becomes codes: eq. (1)
//   scaler     -> unit     what a code of 1 is worth, so that its expectation is the gradient: eq. (10)
//
// Another gradient code has its rule here. Pure; any thread. Scalers keeps what it says of a step.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/types.h"

namespace tg::daemon {

struct CodeRule {
  double clip_sigma = 2.5;   // 0: not clipped
  bool repo_recipe = false;  // as the authors' code: the scaler is c*sigma even above max|g|, and the shared one clips
  bool shared = true;        // one scaler for all members, eq. (4); else each member's codes have its own

  struct Own {
    float scaler = 0;
    float clip = 0;  // bound of this node's gradient; +inf: none
  };
  // elements: the real ones of the segment.
  Own own(const kernels::Statistics& gradient, std::size_t elements) const;
  // announced: every member's scaler, by rank.
  float agreed(std::span<const float> announced) const;
  kernels::Scale scale(const Own& own, float agreed) const;
  float unit(float scaler) const { return kernels::applied_scale(scaler); }
};

}  // namespace tg::daemon
