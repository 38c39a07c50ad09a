// The update rules over registers of floats; `Floats` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/require.h"

namespace tg::kernels {
namespace {

// Stores floats of the state.
template <bool kStream, class Floats>
inline void put(Floats values, float* at) {
  if constexpr (kStream) {
    values.stream(at);
  } else {
    values.store(at);
  }
}

// A slot that is NaN makes its new parameter NaN: to look at that one is enough.
template <class Floats, class... Slots>
inline void make_canonical(Floats& parameters, Slots&... slots) {
  if (!has_nan(parameters)) [[likely]]
    return;
  parameters = canonical(parameters);
  ((slots = canonical(slots)), ...);
}

template <class Floats, bool kStream, OptimizerKind kKind, bool kDecay, class Source>
inline void update_span(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                        const StateSpan& to) {
  static_assert(kWordBits % Floats::kWidth == 0, "no tail in a word of elements, and so in none of a block");
  const float* const w_from = from.parameters.data();
  const float* const slot0_from = from.slot0.data();
  const float* const slot1_from = from.slot1.data();
  float* const w_to = to.parameters.data();
  float* const slot0_to = to.slot0.data();
  float* const slot1_to = to.slot1.data();
  const Floats rate = Floats::all(u.rate), scale = Floats::all(u.scale), decay = Floats::all(u.weight_decay);
  const Floats decay_rate = Floats::all(u.decay_rate), momentum = Floats::all(u.momentum),
               epsilon = Floats::all(u.epsilon);
  const Floats beta1 = Floats::all(u.beta1), one_minus_beta1 = Floats::all(u.one_minus_beta1);
  const Floats beta2 = Floats::all(u.beta2), one_minus_beta2 = Floats::all(u.one_minus_beta2);
  for (std::size_t i = 0; i < elements; i += Floats::kWidth) {
    Floats w = Floats::load(w_from + i);
    Floats g = scale * Floats::from(sums + i);
    if constexpr (kDecay && kKind != OptimizerKind::kAdamW) g = g + decay * w;
    if constexpr (kKind == OptimizerKind::kSgd) {
      Floats next = w - rate * g;
      make_canonical(next);
      put<kStream>(next, w_to + i);
    } else if constexpr (kKind == OptimizerKind::kMomentum) {
      Floats v = momentum * Floats::load(slot0_from + i) + g, next = w - rate * v;
      make_canonical(next, v);
      put<kStream>(v, slot0_to + i);
      put<kStream>(next, w_to + i);
    } else {
      static_assert(kKind == OptimizerKind::kAdam || kKind == OptimizerKind::kAdamW, "this rule is missing here");
      if constexpr (kDecay && kKind == OptimizerKind::kAdamW) w = w - decay_rate * decay * w;
      Floats m = beta1 * Floats::load(slot0_from + i) + one_minus_beta1 * g;
      Floats v = beta2 * Floats::load(slot1_from + i) + one_minus_beta2 * g * g;
      Floats next = w - rate * m / (square_root(v) + epsilon);
      make_canonical(next, m, v);
      put<kStream>(m, slot0_to + i);
      put<kStream>(v, slot1_to + i);
      put<kStream>(next, w_to + i);
    }
  }
}

template <class Floats, bool kStream, bool kDecay, class Source>
inline void apply_decayed(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                          const StateSpan& to) {
  switch (u.kind) {
    case OptimizerKind::kSgd:
      return update_span<Floats, kStream, OptimizerKind::kSgd, kDecay>(u, sums, elements, from, to);
    case OptimizerKind::kMomentum:
      return update_span<Floats, kStream, OptimizerKind::kMomentum, kDecay>(u, sums, elements, from, to);
    case OptimizerKind::kAdam:
      return update_span<Floats, kStream, OptimizerKind::kAdam, kDecay>(u, sums, elements, from, to);
    case OptimizerKind::kAdamW:
      return update_span<Floats, kStream, OptimizerKind::kAdamW, kDecay>(u, sums, elements, from, to);
  }
}

template <class Floats, bool kStream, class Source>
inline void apply_to(const Update& u, const Source* sums, std::size_t elements, const ConstStateSpan& from,
                     const StateSpan& to) {
  if (u.weight_decay != 0) return apply_decayed<Floats, kStream, true>(u, sums, elements, from, to);
  apply_decayed<Floats, kStream, false>(u, sums, elements, from, to);
}

// The elements from `first` on, whose sums start at `sums`. After the last part of a state that is written past the
// caches, the caller fences: another thread that is told of the results must find them.
template <class Floats, class Source>
inline void apply_part(const Update& u, const Source* sums, std::size_t first, std::size_t elements,
                       const ConstStateSpan& from, const StateSpan& to) {
  const auto part = [&](auto span) { return span.empty() ? span : span.subspan(first, elements); };
  const ConstStateSpan part_from{part(from.parameters), part(from.slot0), part(from.slot1)};
  const StateSpan part_to{part(to.parameters), part(to.slot0), part(to.slot1)};
  if (u.past_caches) return apply_to<Floats, true>(u, sums, elements, part_from, part_to);
  apply_to<Floats, false>(u, sums, elements, part_from, part_to);
}

template <class Floats, class Source>
inline void apply_x86(const Update& u, std::span<const Source> sums, ConstStateSpan from, StateSpan to) {
  require_state(u.kind, sums.size(), from, to);
  apply_part<Floats>(u, sums.data(), 0, sums.size(), from, to);
  if (u.past_caches) _mm_sfence();
}

}  // namespace
}  // namespace tg::kernels
