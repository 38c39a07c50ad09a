// The scalar variant: plain C++ for any processor, written to be read. It defines what is right. The other variants'
// files have the same names: in kernels/x86 if the instruction sets share a body, else in each set's own folder.
#pragma once

#include <bit>

#include "kernels/constants.h"
#include "kernels/kernels.h"

namespace tg::kernels::scalar {

extern const Kernels kTable;

inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(kCanonicalNan); }

Statistics statistics(std::span<const float> gradient);
void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes);
std::size_t encode_codes(ConstPlanes codes, std::span<std::byte> payload);
bool decode_codes(std::span<const std::byte> payload, Planes codes);
bool accumulate_codes(std::span<const std::byte> payload, std::span<std::int8_t> sums);
void accumulate_planes(ConstPlanes codes, std::span<std::int8_t> sums);
std::size_t encode_sums(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload);
bool decode_sums(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums);
std::size_t encode_codes_rans(ConstPlanes codes, std::span<const std::size_t> runs, std::span<std::byte> payload);
bool decode_codes_rans(std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes);
std::size_t encode_sums_rans(std::span<const std::int8_t> sums, int members, std::span<const std::size_t> runs,
                             std::span<std::byte> payload);
bool decode_sums_rans(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                      std::span<std::int8_t> sums);
void apply_sums(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to);
void apply_floats(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to);
bool apply_codes(const Update& update, const Received& received, ConstStateSpan from, StateSpan to);
void accumulate_floats(std::span<const std::byte> addend, std::span<float> total);
void accumulate_scaled(ConstPlanes codes, float scale, std::span<float> total);
void encode_float16(std::span<const float> values, std::span<std::byte> payload);
void decode_float16(std::span<const std::byte> payload, std::span<float> values);
void accumulate_float16(std::span<const std::byte> addend, std::span<float> total);
void add_scaled(std::span<const float> parameters, float factor, std::span<float> gradient);
void average(std::span<const float> parameters, float rate, std::span<float> average);
std::uint64_t count(std::span<const std::uint64_t> plane);
std::uint64_t digest(std::span<const float> values, std::uint64_t first, std::uint64_t salt);

}  // namespace tg::kernels::scalar
