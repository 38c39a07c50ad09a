// A chunk's float payload, float32 or float16: what a member's values are on the wire, and how they are added up. Every
// member adds what would have travelled, its own values included. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>

#include "daemon/exchange/plan.h"
#include "daemon/step/payload.h"
#include "kernels/kernels.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class FloatPayload {
 public:
  explicit FloatPayload(const kernels::Kernels& kernels) : kernels_(kernels) {}

  static std::size_t bytes(const ChunkPlan& chunk) {
    return chunk.size() * (chunk.format == GradientFormat::kFloat16 ? 2 : sizeof(float));
  }
  // The payload has room for bytes() of them.
  PayloadCodec::Written write(GradientFormat format, std::span<const float> values, std::span<std::byte> payload) const;
  // False where the payload is not as long as the chunk is.
  bool read(const ChunkPlan& chunk, std::span<const std::byte> payload, std::span<float> values) const;
  bool add(const ChunkPlan& chunk, std::span<const std::byte> payload, std::span<float> sums) const;
  // What the values are after they travelled. room: bytes() of them.
  void round(GradientFormat format, std::span<float> values, std::span<std::byte> room) const;

 private:
  const kernels::Kernels& kernels_;
};

}  // namespace tg::daemon
