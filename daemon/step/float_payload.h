// A chunk's float payload, float32 or float16: what a member's values are on the wire, and how they are added up. Every
// member adds what would have travelled, its own values included. A gradient is copied to the host, into the
// payload itself or slice by slice through a scratch that stays in the first caches. Owns that scratch; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "daemon/exchange/layout.h"
#include "daemon/step/payload.h"
#include "kernels/base/aligned_array.h"
#include "kernels/codec_kernels.h"
#include "kernels/tensor_kernels.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class FloatPayload {
 public:
  // slice: elements at a time.
  FloatPayload(kernels::TensorKernels& tensors, const kernels::CodecKernels& codec, std::size_t slice = kSlice);

  static std::size_t bytes(const ChunkLayout& chunk) { return chunk.size() * element_bytes(chunk.format); }
  // The payload has room for bytes() of them.
  PayloadCodec::Written write(GradientFormat format, kernels::ConstFloats gradient, std::span<std::byte> payload);
  PayloadCodec::Written write(GradientFormat format, std::span<const float> values, std::span<std::byte> payload) const;
  // False if the payload's length does not match the chunk.
  bool read(const ChunkLayout& chunk, std::span<const std::byte> payload, std::span<float> values) const;
  bool add(const ChunkLayout& chunk, std::span<const std::byte> payload, std::span<float> sums) const;
  // This node's gradient, as if it had travelled.
  void add(GradientFormat format, kernels::ConstFloats gradient, std::span<float> sums);
  // Rounds the values as travelling would.
  void round(GradientFormat format, std::span<float> values);

  // Elements: 16 KiB stay in the first cache. A device takes some 12 us for a copy, however short: 1 MiB of them
  // takes twice that.
  static constexpr std::size_t kSlice = 4096, kDeviceSlice = 256 * 1024;
  static std::size_t slice_of(bool host_accessible, std::size_t longest_chunk) {
    return host_accessible ? kSlice : std::min(kDeviceSlice, std::max(longest_chunk, kSlice));
  }
  static constexpr std::size_t kScratchBytes = kSlice * (sizeof(float) + 2);

 private:
  static constexpr std::size_t element_bytes(GradientFormat format) {
    return format == GradientFormat::kFloat16 ? 2 : sizeof(float);
  }
  std::span<const float> copy_out(kernels::ConstFloats gradient);
  // do_slice(first, count) for every slice of so many elements.
  template <class DoSlice>
  void slice_by_slice(std::size_t elements, DoSlice do_slice) {
    for (std::size_t first = 0; first < elements; first += slice_) do_slice(first, std::min(slice_, elements - first));
  }

  kernels::TensorKernels& tensors_;
  const kernels::CodecKernels& codec_;
  const std::size_t slice_;
  AlignedArray<float> values_;       // one slice
  AlignedArray<std::byte> float16_;  // the same slice
};

}  // namespace tg::daemon
