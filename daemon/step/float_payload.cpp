#include "daemon/step/float_payload.h"

#include <cstring>

namespace tg::daemon {

PayloadCodec::Written FloatPayload::write(GradientFormat format, std::span<const float> values,
                                          std::span<std::byte> payload) const {
  if (format == GradientFormat::kFloat16) {
    kernels_.encode_halves(values, payload.first(values.size() * 2));
    return {values.size() * 2, schema::PayloadFormat::kFloat16};
  }
  std::memcpy(payload.data(), values.data(), values.size_bytes());
  return {values.size_bytes(), schema::PayloadFormat::kFloat32};
}

bool FloatPayload::read(const ChunkPlan& chunk, std::span<const std::byte> payload, std::span<float> values) const {
  if (payload.size() != bytes(chunk)) return false;
  if (chunk.format == GradientFormat::kFloat16)
    kernels_.decode_halves(payload, values);
  else
    std::memcpy(values.data(), payload.data(), payload.size());
  return true;
}

bool FloatPayload::add(const ChunkPlan& chunk, std::span<const std::byte> payload, std::span<float> sums) const {
  if (payload.size() != bytes(chunk)) return false;
  if (chunk.format == GradientFormat::kFloat16)
    kernels_.accumulate_halves(payload, sums);
  else
    kernels_.accumulate_floats(payload, sums);
  return true;
}

void FloatPayload::round(GradientFormat format, std::span<float> values, std::span<std::byte> room) const {
  if (format != GradientFormat::kFloat16) return;
  kernels_.encode_halves(values, room.first(values.size() * 2));
  kernels_.decode_halves(room.first(values.size() * 2), values);
}

}  // namespace tg::daemon
