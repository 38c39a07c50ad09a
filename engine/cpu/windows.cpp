#include "engine/cpu/windows.h"

#include <algorithm>
#include <cstring>

namespace tg::engine::cpu {

std::vector<Span> adaptive_spans(int inputs, int outputs) {
  std::vector<Span> spans;
  const auto count = static_cast<std::size_t>(inputs), parts = static_cast<std::size_t>(outputs);
  for (std::size_t i = 0; i < parts; ++i) spans.push_back({i * count / parts, ((i + 1) * count + parts - 1) / parts});
  return spans;
}

void Windows::forward(const float* x, float* y) const {
  for (const Span& row : rows) {
    for (const Span& column : columns) {
      std::fill_n(y, channels, 0.0F);
      for (std::size_t r = row.first; r < row.last; ++r)
        for (std::size_t c = column.first; c < column.last; ++c) {
          const float* __restrict const pixel = x + (r * width + c) * channels;
          for (std::size_t channel = 0; channel < channels; ++channel) y[channel] += pixel[channel];
        }
      const auto divisor = static_cast<float>(row.size() * column.size());
      for (std::size_t channel = 0; channel < channels; ++channel) y[channel] /= divisor;
      y += channels;
    }
  }
}

void Windows::backward(const float* dy, float* dx) const {
  std::fill_n(dx, channels * height * width, 0.0F);
  for (const Span& row : rows) {
    for (const Span& column : columns) {
      const auto divisor = static_cast<float>(row.size() * column.size());
      for (std::size_t r = row.first; r < row.last; ++r)
        for (std::size_t c = column.first; c < column.last; ++c) {
          float* __restrict const pixel = dx + (r * width + c) * channels;
          for (std::size_t channel = 0; channel < channels; ++channel) pixel[channel] += dy[channel] / divisor;
        }
      dy += channels;
    }
  }
}

}  // namespace tg::engine::cpu
