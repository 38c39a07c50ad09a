#include <functional>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

TEST(Dispatch, ListsScalarLast) {
  ASSERT_FALSE(available().empty());
  EXPECT_EQ(available().back()->name, "scalar");
}

TEST(Dispatch, AutoIsTheBest) {
  const auto chosen = select("auto");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, available().front());
}

TEST(Dispatch, AnUnknownNameIsAnErrorThatListsTheVariants) {
  const auto chosen = select("altivec");
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().kind, ErrorKind::kUsage);
  for (const Kernels* const kernels : available()) {
    EXPECT_NE(chosen.error().message.find(kernels->name), std::string::npos) << chosen.error().message;
  }
}

bool has_vbmi2() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512vbmi2") != 0;
#else
  return false;
#endif
}

class DispatchTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(DispatchTest);

TEST_P(DispatchTest, PassesItsSelfTest) { EXPECT_TRUE(self_test(kernels())); }

TEST_P(DispatchTest, ForcingByNameGivesThatTableAndItsOwnFunctions) {
  const auto chosen = select(GetParam());
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_EQ((*chosen)->name, GetParam());
  for (const Kernels* const other : available()) {
    if (other == *chosen) continue;
    EXPECT_NE((*chosen)->statistics, other->statistics) << other->name;
    EXPECT_NE((*chosen)->ternarize, other->ternarize);
    EXPECT_NE((*chosen)->encode_codes, other->encode_codes);
    EXPECT_NE((*chosen)->decode_codes, other->decode_codes);
    EXPECT_NE((*chosen)->accumulate_codes, other->accumulate_codes);
    EXPECT_NE((*chosen)->accumulate_planes, other->accumulate_planes);
    EXPECT_NE((*chosen)->encode_sums, other->encode_sums);
    EXPECT_NE((*chosen)->decode_sums, other->decode_sums);
    EXPECT_NE((*chosen)->apply_sums, other->apply_sums);
    EXPECT_NE((*chosen)->apply_floats, other->apply_floats);
    EXPECT_NE((*chosen)->apply_codes, other->apply_codes);
    EXPECT_NE((*chosen)->accumulate_scaled, other->accumulate_scaled);
    EXPECT_NE((*chosen)->encode_float16, other->encode_float16);
    EXPECT_NE((*chosen)->decode_float16, other->decode_float16);
    EXPECT_NE((*chosen)->accumulate_float16, other->accumulate_float16);
    EXPECT_NE((*chosen)->accumulate_floats, other->accumulate_floats);
    EXPECT_NE((*chosen)->add_scaled, other->add_scaled);
    EXPECT_NE((*chosen)->average, other->average);
    EXPECT_NE((*chosen)->count, other->count);
    EXPECT_NE((*chosen)->digest, other->digest);
    // A processor with AVX-512 but without VBMI2 codes the entropy by AVX2's functions.
    const bool both_x86 = other->name != "scalar" && (*chosen)->name != "scalar";
    if (both_x86 && !has_vbmi2()) continue;
    EXPECT_NE((*chosen)->encode_codes_rans, other->encode_codes_rans);
    EXPECT_NE((*chosen)->decode_codes_rans, other->decode_codes_rans);
    EXPECT_NE((*chosen)->encode_sums_rans, other->encode_sums_rans);
    EXPECT_NE((*chosen)->decode_sums_rans, other->decode_sums_rans);
  }
}

void negate_nans(std::span<float> values) {
  for (float& value : values)
    if (std::isnan(value)) value = -value;
}

// Each breaks one function of a table a little, in the last element where that is possible.
const std::pair<const char*, std::function<void(Kernels&)>> kBreakages[] = {
    {"statistics",
     [](Kernels& k) {
       k.statistics = [](std::span<const float> g) {
         Statistics result = scalar_variant().statistics(g);
         if (!g.empty()) result.sum = std::nextafter(result.sum, 1e300);
         return result;
       };
     }},
    {"ternarize",
     [](Kernels& k) {
       k.ternarize = [](std::span<const float> g, std::size_t first, const DrawKey& key, const Scale& scale,
                        Planes codes) {
         scalar_variant().ternarize(g, first, key, scale, codes);
         if (codes.nonzero.size() > 16) codes.nonzero[17] ^= std::uint64_t{1} << 63;
       };
     }},
    {"encode_codes",
     [](Kernels& k) {
       k.encode_codes = [](ConstPlanes codes, std::span<std::byte> payload) {
         const std::size_t bytes = scalar_variant().encode_codes(codes, payload);
         if (bytes > 0) payload[bytes - 1] ^= std::byte{1};
         return bytes;
       };
     }},
    {"decode_codes",
     [](Kernels& k) {
       k.decode_codes = [](std::span<const std::byte> payload, Planes codes) {
         const bool taken = scalar_variant().decode_codes(payload, codes);
         if (taken && !codes.negative.empty()) codes.negative.back() ^= 1;
         return taken;
       };
     }},
    {"decode_codes, length unchecked",
     [](Kernels& k) {
       k.decode_codes = [](std::span<const std::byte> payload, Planes codes) {
         scalar_variant().decode_codes(payload, codes);
         return true;
       };
     }},
    {"accumulate_codes",
     [](Kernels& k) {
       k.accumulate_codes = [](std::span<const std::byte> payload, std::span<std::int8_t> sums) {
         const bool taken = scalar_variant().accumulate_codes(payload, sums);
         if (taken && !sums.empty()) sums.back() ^= 1;
         return taken;
       };
     }},
    {"accumulate_planes",
     [](Kernels& k) {
       k.accumulate_planes = [](ConstPlanes codes, std::span<std::int8_t> sums) {
         scalar_variant().accumulate_planes(codes, sums);
         if (!sums.empty()) sums.back() ^= 1;
       };
     }},
    {"encode_sums",
     [](Kernels& k) {
       k.encode_sums = [](std::span<const std::int8_t> sums, int members, std::span<std::byte> payload) {
         const std::size_t bytes = scalar_variant().encode_sums(sums, members, payload);
         if (bytes > 0) payload[bytes - 1] ^= std::byte{1};
         return bytes;
       };
     }},
    {"decode_sums",
     [](Kernels& k) {
       k.decode_sums = [](std::span<const std::byte> payload, int members, std::span<std::int8_t> sums) {
         const bool taken = scalar_variant().decode_sums(payload, members, sums);
         if (taken && !sums.empty()) sums.back() ^= 1;
         return taken;
       };
     }},
    {"encode_codes_rans",
     [](Kernels& k) {
       k.encode_codes_rans = [](ConstPlanes codes, std::span<const std::size_t> runs, std::span<std::byte> payload) {
         const std::size_t bytes = scalar_variant().encode_codes_rans(codes, runs, payload);
         if (bytes > 0) payload[bytes - 1] ^= std::byte{1};
         return bytes;
       };
     }},
    {"encode_codes_rans, never",
     [](Kernels& k) {
       k.encode_codes_rans = [](ConstPlanes, std::span<const std::size_t>, std::span<std::byte>) {
         return std::size_t{0};
       };
     }},
    {"decode_codes_rans",
     [](Kernels& k) {
       k.decode_codes_rans = [](std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes) {
         const bool taken = scalar_variant().decode_codes_rans(payload, runs, codes);
         if (taken) codes.negative.back() ^= 1;
         return taken;
       };
     }},
    {"decode_codes_rans, length unchecked",
     [](Kernels& k) {
       k.decode_codes_rans = [](std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes) {
         scalar_variant().decode_codes_rans(payload, runs, codes);
         return true;
       };
     }},
    {"encode_sums_rans",
     [](Kernels& k) {
       k.encode_sums_rans = [](std::span<const std::int8_t> sums, int members, std::span<const std::size_t> runs,
                               std::span<std::byte> payload) {
         const std::size_t bytes = scalar_variant().encode_sums_rans(sums, members, runs, payload);
         if (bytes > 0) payload[bytes - 1] ^= std::byte{1};
         return bytes;
       };
     }},
    {"decode_sums_rans",
     [](Kernels& k) {
       k.decode_sums_rans = [](std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                               std::span<std::int8_t> sums) {
         const bool taken = scalar_variant().decode_sums_rans(payload, members, runs, sums);
         if (taken) sums.back() ^= 1;
         return taken;
       };
     }},
    {"apply_codes",
     [](Kernels& k) {
       k.apply_codes = [](const Update& u, const Received& received, ConstStateSpan from, StateSpan to) {
         const bool taken = scalar_variant().apply_codes(u, received, from, to);
         if (u.kind == OptimizerKind::kMomentum && !to.slot0.empty()) to.slot0.back() += 1;
         return taken;
       };
     }},
    {"apply_codes, payloads unchecked",
     [](Kernels& k) {
       k.apply_codes = [](const Update& u, const Received& received, ConstStateSpan from, StateSpan to) {
         scalar_variant().apply_codes(u, received, from, to);
         return true;
       };
     }},
    {"accumulate_scaled",
     [](Kernels& k) {
       k.accumulate_scaled = [](ConstPlanes codes, float scale, std::span<float> total) {
         scalar_variant().accumulate_scaled(codes, scale, total);
         if (!total.empty()) total.back() += 1;
       };
     }},
    {"encode_float16",
     [](Kernels& k) {
       k.encode_float16 = [](std::span<const float> values, std::span<std::byte> payload) {
         scalar_variant().encode_float16(values, payload);
         if (!payload.empty()) payload.back() ^= std::byte{1};
       };
     }},
    {"decode_float16",
     [](Kernels& k) {
       k.decode_float16 = [](std::span<const std::byte> payload, std::span<float> values) {
         scalar_variant().decode_float16(payload, values);
         if (!values.empty()) values.back() += 1;
       };
     }},
    {"accumulate_float16",
     [](Kernels& k) {
       k.accumulate_float16 = [](std::span<const std::byte> addend, std::span<float> total) {
         scalar_variant().accumulate_float16(addend, total);
         if (!total.empty()) total.back() += 1;
       };
     }},
    {"apply_sums",
     [](Kernels& k) {
       k.apply_sums = [](const Update& u, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to) {
         scalar_variant().apply_sums(u, sums, from, to);
         if (u.kind == OptimizerKind::kAdam && !sums.empty()) to.slot1.back() += 1;
       };
     }},
    {"apply_floats",
     [](Kernels& k) {
       k.apply_floats = [](const Update& u, std::span<const float> sums, ConstStateSpan from, StateSpan to) {
         scalar_variant().apply_floats(u, sums, from, to);
         if (u.kind == OptimizerKind::kMomentum && !sums.empty()) to.parameters.back() += 1;
       };
     }},
    {"apply_floats, NaNs as they come",
     [](Kernels& k) {
       k.apply_floats = [](const Update& u, std::span<const float> sums, ConstStateSpan from, StateSpan to) {
         scalar_variant().apply_floats(u, sums, from, to);
         negate_nans(to.parameters);
       };
     }},
    {"accumulate_floats",
     [](Kernels& k) {
       k.accumulate_floats = [](std::span<const std::byte> addend, std::span<float> total) {
         scalar_variant().accumulate_floats(addend, total);
         if (!total.empty()) total.back() += 1;
       };
     }},
    {"add_scaled",
     [](Kernels& k) {
       k.add_scaled = [](std::span<const float> parameters, float factor, std::span<float> gradient) {
         scalar_variant().add_scaled(parameters, factor, gradient);
         if (!gradient.empty()) gradient.back() += 1;
       };
     }},
    {"average",
     [](Kernels& k) {
       k.average = [](std::span<const float> parameters, float rate, std::span<float> average) {
         scalar_variant().average(parameters, rate, average);
         if (!average.empty()) average.back() += 1;
       };
     }},
    {"average, NaNs as they come",
     [](Kernels& k) {
       k.average = [](std::span<const float> parameters, float rate, std::span<float> average) {
         scalar_variant().average(parameters, rate, average);
         negate_nans(average);
       };
     }},
    {"digest",
     [](Kernels& k) {
       k.digest = [](std::span<const float> values, std::uint64_t first, std::uint64_t salt) {
         return scalar_variant().digest(values, first & 0xFFFFFFFF, salt) + values.size() / 2048;
       };
     }},
};

TEST_P(DispatchTest, TheSelfTestSeesEachBrokenFunction) {
  for (const auto& [name, breakage] : kBreakages) {
    Kernels broken = kernels();
    breakage(broken);
    EXPECT_FALSE(self_test(broken)) << name;
  }
}

}  // namespace
}  // namespace tg::kernels::test
