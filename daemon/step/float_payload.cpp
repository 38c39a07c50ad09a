#include "daemon/step/float_payload.h"

#include <cstring>

namespace tg::daemon {

FloatPayload::FloatPayload(kernels::TensorKernels& tensors, const kernels::CodecKernels& codec, std::size_t slice)
    : tensors_(tensors), codec_(codec), slice_(slice), values_(slice), float16_(slice * 2) {}

std::span<const float> FloatPayload::copy_out(kernels::ConstFloats gradient) {
  const std::span<float> values = values_.span().first(gradient.size());
  tensors_.copy_out(gradient, std::as_writable_bytes(values));
  return values;
}

PayloadCodec::Written FloatPayload::write(GradientFormat format, kernels::ConstFloats gradient,
                                          std::span<std::byte> payload) {
  const std::size_t bytes = gradient.size() * element_bytes(format);
  if (format == GradientFormat::kFloat32) {
    tensors_.copy_out(gradient, payload.first(bytes));
    return {bytes, schema::PayloadFormat::kFloat32};
  }
  slice_by_slice(gradient.size(), [&](std::size_t first, std::size_t count) {
    codec_.encode_float16(copy_out(gradient.subspan(first, count)), payload.subspan(first * 2, count * 2));
  });
  return {bytes, schema::PayloadFormat::kFloat16};
}

PayloadCodec::Written FloatPayload::write(GradientFormat format, std::span<const float> values,
                                          std::span<std::byte> payload) const {
  if (format == GradientFormat::kFloat16) {
    codec_.encode_float16(values, payload.first(values.size() * 2));
    return {values.size() * 2, schema::PayloadFormat::kFloat16};
  }
  std::memcpy(payload.data(), values.data(), values.size_bytes());
  return {values.size_bytes(), schema::PayloadFormat::kFloat32};
}

bool FloatPayload::read(const ChunkLayout& chunk, std::span<const std::byte> payload, std::span<float> values) const {
  if (payload.size() != bytes(chunk)) return false;
  if (chunk.format == GradientFormat::kFloat16)
    codec_.decode_float16(payload, values);
  else
    std::memcpy(values.data(), payload.data(), payload.size());
  return true;
}

bool FloatPayload::add(const ChunkLayout& chunk, std::span<const std::byte> payload, std::span<float> sums) const {
  if (payload.size() != bytes(chunk)) return false;
  if (chunk.format == GradientFormat::kFloat16)
    codec_.accumulate_float16(payload, sums);
  else
    codec_.accumulate_floats(payload, sums);
  return true;
}

void FloatPayload::add(GradientFormat format, kernels::ConstFloats gradient, std::span<float> sums) {
  slice_by_slice(gradient.size(), [&](std::size_t first, std::size_t count) {
    const std::span<const float> values = copy_out(gradient.subspan(first, count));
    if (format == GradientFormat::kFloat32) {
      codec_.accumulate_floats(std::as_bytes(values), sums.subspan(first, count));
      return;
    }
    const std::span<std::byte> float16 = float16_.span().first(count * 2);
    codec_.encode_float16(values, float16);
    codec_.accumulate_float16(float16, sums.subspan(first, count));
  });
}

void FloatPayload::round(GradientFormat format, std::span<float> values) {
  if (format != GradientFormat::kFloat16) return;
  slice_by_slice(values.size(), [&](std::size_t first, std::size_t count) {
    const std::span<std::byte> float16 = float16_.span().first(count * 2);
    codec_.encode_float16(values.subspan(first, count), float16);
    codec_.decode_float16(float16, values.subspan(first, count));
  });
}

}  // namespace tg::daemon
