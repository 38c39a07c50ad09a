// Numbers that every variant of a kernel uses. Constants only: the instruction-set files include this, and an
// inline function here would be emitted with their flags.
#pragma once

#include <cstdint>

namespace tg::kernels {

// Philox4x32 (Salmon et al., SC 2011, table 2): multipliers and the Weyl increments of the key.
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// The bits of every NaN in the replicated state. A NaN that an update produces is 0xFFC00000 on x86 and 0x7FFFFFFF on
// a device.
inline constexpr std::uint32_t kCanonicalNan = 0x7FC00000;

inline constexpr std::uint32_t kDitherStream = 1U << 31;  // flag in the counter word that holds the segment

// The digest's multipliers, odd and with about half of their bits set: the fractions of the golden ratio and sqrt(2).
inline constexpr std::uint32_t kDigest1 = 0x9E3779B1;
inline constexpr std::uint32_t kDigest2 = 0x6A09E667;

}  // namespace tg::kernels
