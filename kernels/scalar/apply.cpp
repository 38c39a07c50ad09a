#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/require.h"
#include "kernels/scalar/functions.h"
#include "kernels/scratch.h"

namespace tg::kernels::scalar {
namespace {

template <class Source>
void apply(const Update& u, std::span<const Source> sums, ConstStateSpan from, StateSpan to) {
  require_state(u.kind, sums.size(), from, to);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float w = from.parameters[i];
    float g = u.scale * static_cast<float>(sums[i]);
    if (u.weight_decay != 0 && u.kind != OptimizerKind::kAdamW) g = g + u.weight_decay * w;
    switch (u.kind) {
      case OptimizerKind::kSgd:
        to.parameters[i] = canonical(w - u.rate * g);
        break;
      case OptimizerKind::kMomentum: {
        const float v = u.momentum * from.slot0[i] + g;
        to.slot0[i] = canonical(v);
        to.parameters[i] = canonical(w - u.rate * v);
        break;
      }
      case OptimizerKind::kAdamW:
        if (u.weight_decay != 0) w = w - u.decay_rate * u.weight_decay * w;
        [[fallthrough]];
      case OptimizerKind::kAdam: {
        const float m = u.beta1 * from.slot0[i] + u.one_minus_beta1 * g;
        const float v = u.beta2 * from.slot1[i] + u.one_minus_beta2 * g * g;
        to.slot0[i] = canonical(m);
        to.slot1[i] = canonical(v);
        to.parameters[i] = canonical(w - u.rate * m / (std::sqrt(v) + u.epsilon));
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

bool apply_codes(const Update& update, const Received& received, ConstStateSpan from, StateSpan to) {
  const std::size_t elements = from.parameters.size();
  require_state(update.kind, elements, from, to);
  require_received(received, elements);
  const std::span<std::byte> scratch = thread_scratch(elements);
  const std::span sums(reinterpret_cast<std::int8_t*>(scratch.data()), scratch.size());
  std::ranges::fill(sums, 0);
  for (const auto payload : received.payloads) {
    if (!accumulate_codes(payload, sums)) return false;
  }
  for (const ConstPlanes& codes : received.planes) accumulate_planes(codes, sums);
  apply(update, std::span<const std::int8_t>(sums), from, to);
  return true;
}

}  // namespace tg::kernels::scalar
