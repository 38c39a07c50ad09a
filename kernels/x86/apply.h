// The update rules over registers of floats; `Floats` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/require.h"

namespace tg::kernels {
namespace {

template <class Floats, OptimizerKind kKind, bool kDecay, class Source>
inline void update_span(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                        const StateSpan& to) {
  const float* const w_from = from.parameters.data();
  const float* const slot0_from = from.slot0.data();
  const float* const slot1_from = from.slot1.data();
  float* const w_to = to.parameters.data();
  float* const slot0_to = to.slot0.data();
  float* const slot1_to = to.slot1.data();
  const Floats rate = Floats::all(u.rate), scale = Floats::all(u.scale), decay = Floats::all(u.weight_decay);
  const Floats momentum = Floats::all(u.momentum), epsilon = Floats::all(u.epsilon);
  const Floats beta1 = Floats::all(u.beta1), one_minus_beta1 = Floats::all(u.one_minus_beta1);
  const Floats beta2 = Floats::all(u.beta2), one_minus_beta2 = Floats::all(u.one_minus_beta2);
  for (std::size_t i = 0; i < elements; i += Floats::kWidth) {
    const Floats w = Floats::load(w_from + i);
    Floats g = scale * Floats::from(sums + i);
    if constexpr (kDecay) g = g + decay * w;
    if constexpr (kKind == OptimizerKind::kSgd) {
      (w - rate * g).store(w_to + i);
    } else if constexpr (kKind == OptimizerKind::kMomentum) {
      const Floats v = momentum * Floats::load(slot0_from + i) + g;
      v.store(slot0_to + i);
      (w - rate * v).store(w_to + i);
    } else {
      const Floats m = beta1 * Floats::load(slot0_from + i) + one_minus_beta1 * g;
      const Floats v = beta2 * Floats::load(slot1_from + i) + one_minus_beta2 * g * g;
      m.store(slot0_to + i);
      v.store(slot1_to + i);
      (w - rate * m / (square_root(v) + epsilon)).store(w_to + i);
    }
  }
}

template <class Floats, bool kDecay, class Source>
inline void apply_decayed(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                          const StateSpan& to) {
  switch (u.kind) {
    case OptimizerKind::kSgd:
      return update_span<Floats, OptimizerKind::kSgd, kDecay>(u, sums, elements, from, to);
    case OptimizerKind::kMomentum:
      return update_span<Floats, OptimizerKind::kMomentum, kDecay>(u, sums, elements, from, to);
    case OptimizerKind::kAdam:
      return update_span<Floats, OptimizerKind::kAdam, kDecay>(u, sums, elements, from, to);
  }
}

template <class Floats, class Source>
inline void apply_x86(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                      const StateSpan& to) {
  require_state(u.kind, elements, from, to);
  if (u.weight_decay != 0) return apply_decayed<Floats, true>(u, sums, elements, from, to);
  apply_decayed<Floats, false>(u, sums, elements, from, to);
}

}  // namespace
}  // namespace tg::kernels
