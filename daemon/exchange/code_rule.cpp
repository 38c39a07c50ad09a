#include "daemon/exchange/code_rule.h"

#include <algorithm>
#include <cmath>

namespace tg::daemon {

CodeRule::Own CodeRule::own(const kernels::Statistics& gradient, std::size_t elements) const {
  const float bound = kernels::clip_bound(gradient, elements, static_cast<float>(clip_sigma));
  const bool clipped = clip_sigma > 0 && std::isfinite(bound);  // no spread: nothing to clip by
  return {repo_recipe && clipped ? bound : std::min(gradient.max_abs, bound), bound};
}

float CodeRule::agreed(std::span<const float> announced) const {
  return *std::max_element(announced.begin(), announced.end());
}

kernels::Scale CodeRule::scale(const Own& own, float agreed) const {
  const float scaler = shared ? agreed : own.scaler;
  return {repo_recipe ? scaler : own.clip, scaler};
}

}  // namespace tg::daemon
