// The AVX2 variant (with FMA, BMI2, POPCNT), bit for bit equal to the scalar one. Only these files are compiled with
// the flags of the instruction set, and they hold no function that another object could share: dispatch.cpp asks the
// processor first.
#pragma once

#include "kernels/kernels.h"

namespace tg::kernels::avx2 {

extern const Kernels kTable;

Statistics statistics(std::span<const float> gradient);
void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes);
std::size_t encode_codes(ConstPlanes codes, std::span<std::byte> payload);
bool decode_codes(std::span<const std::byte> payload, Planes codes);
bool accumulate_codes(std::span<const std::byte> payload, std::span<std::int8_t> sums);
void accumulate_planes(ConstPlanes codes, std::span<std::int8_t> sums);
std::size_t encode_sums(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload);
bool decode_sums(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums);
void apply_sums(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to);
void apply_floats(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to);
void accumulate_floats(std::span<const std::byte> addend, std::span<float> total);
void add_scaled(std::span<const float> parameters, float factor, std::span<float> gradient);
void average(std::span<const float> parameters, float rate, std::span<float> average);
std::uint64_t digest(std::span<const float> values, std::uint64_t first, std::uint64_t salt);

}  // namespace tg::kernels::avx2
