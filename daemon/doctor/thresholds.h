// Thresholds beyond which something is a finding.
#pragma once

#include <cstdint>

namespace tg::daemon {

// Clocks: apart from the others' median. Records of a run's end are ordered by their times, to the second.
inline constexpr double kClockWarnSeconds = 1, kClockFailSeconds = 60;
// A link below this share of the median link, and too slow for a 1 Gbit/s Ethernet, is slow. Links that share cores or
// a machine's loopback differ by less than three times; Ethernets differ by ten.
inline constexpr double kSlowShare = 1.0 / 3;
inline constexpr double kGigabitPayloadMbps = 800;
// A link below this share of the given rate (--link) is slow.
inline constexpr double kToldShare = 0.8;
// A switch takes 0.1 ms, a wireless link some ms. A step waits for several trips.
inline constexpr std::uint32_t kMaxRoundTripMicros = 10'000;
// Bytes that should be left on the disk after one run.
inline constexpr std::uint64_t kMinDiskBytes = 100u << 20;
// Open files that should be free besides those a mesh needs.
inline constexpr std::uint64_t kMinFreeDescriptors = 32;

}  // namespace tg::daemon
