// Gradients made for timing: as sparse as a run would find them, with the clip and the scaler that it would choose.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::kernels {

inline constexpr float kClipSigma = 2.5F;  // the paper's

// A Gaussian leaves 68 % of the codes zero at this clip. More are zero where a gradient is concentrated on a share of
// its elements, the others being next to nothing, or where another member's scaler is larger by a factor. 92 % is what
// training has, 99 % its sparse end.
struct Sparseness {
  const char* name;
  double concentrated = 1;  // share of the elements
  float factor = 1;         // times the scaler
};
inline constexpr std::array<Sparseness, 3> kConcentrated = {{{.name = "Gaussian"},
                                                             {.name = "12 % Gaussian", .concentrated = 0.118},
                                                             {.name = "1 % Gaussian", .concentrated = 0.0112}}};
inline constexpr std::array<Sparseness, 2> kLargeScalers = {
    {{.name = "Gaussian, scaler 4 x", .factor = 4}, {.name = "Gaussian, scaler 32 x", .factor = 32}}};

struct MadeGradient {
  MadeGradient(std::size_t elements, const Sparseness& sparseness);

  AlignedArray<float> values;
  Scale scale;
};

}  // namespace tg::kernels
