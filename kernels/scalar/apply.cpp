#include <cmath>

#include "kernels/require.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {
namespace {

template <class Source>
void apply(const Update& u, std::span<const Source> sums, ConstStateSpan from, StateSpan to) {
  require_state(u.kind, sums.size(), from, to);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float w = from.parameters[i];
    float g = u.scale * static_cast<float>(sums[i]);
    if (u.weight_decay != 0) g = g + u.weight_decay * w;
    switch (u.kind) {
      case OptimizerKind::kSgd:
        to.parameters[i] = w - u.rate * g;
        break;
      case OptimizerKind::kMomentum: {
        const float v = u.momentum * from.slot0[i] + g;
        to.slot0[i] = v;
        to.parameters[i] = w - u.rate * v;
        break;
      }
      case OptimizerKind::kAdam: {
        const float m = u.beta1 * from.slot0[i] + u.one_minus_beta1 * g;
        const float v = u.beta2 * from.slot1[i] + u.one_minus_beta2 * g * g;
        to.slot0[i] = m;
        to.slot1[i] = v;
        to.parameters[i] = w - u.rate * m / (std::sqrt(v) + u.epsilon);
        break;
      }
    }
  }
}

}  // namespace

void apply_sums(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to) {
  apply(update, sums, from, to);
}

void apply_floats(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to) {
  apply(update, sums, from, to);
}

}  // namespace tg::kernels::scalar
