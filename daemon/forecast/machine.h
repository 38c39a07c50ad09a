// A node as predictions see it: what it takes per element, per sample and per trip. Made from what `bench` measured
// (schema::BenchReply), each kernel in one case; the formulas and constants below say what other cases take. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

// Seconds per element of the exchange's kernels on one thread; by coding (raw, entropy) where there are two.
struct KernelCosts {
  double ternarize = 0;  // statistics and codes of a gradient
  double codes[2] = {};  // a member's codes, decoded and added up; coding them takes about as long
  double sums[2] = {};   // coded or decoded
  double apply = 0;
};

// Each with its name in reports and files.
struct KernelCost {
  const char* name;
  double* (*field)(KernelCosts&);
};
inline constexpr std::array<KernelCost, 6> kKernelCosts = {{
    {"ternarize", [](KernelCosts& c) { return &c.ternarize; }},
    {"codes-raw", [](KernelCosts& c) { return &c.codes[0]; }},
    {"codes-entropy", [](KernelCosts& c) { return &c.codes[1]; }},
    {"sums-raw", [](KernelCosts& c) { return &c.sums[0]; }},
    {"sums-entropy", [](KernelCosts& c) { return &c.sums[1]; }},
    {"apply", [](KernelCosts& c) { return &c.apply; }},
}};

// What a bench measures with: so many zeros, and sums of so many members.
inline constexpr double kMeasuredZeros = 0.92;
inline constexpr std::size_t kMeasuredMembers = 8;

// Where nothing was measured: an AVX-512 server core of 2020 or later in a busy hour.
inline constexpr KernelCosts kAssumedCosts = {0.65e-9, {0.1e-9, 0.19e-9}, {0.4e-9, 0.55e-9}, 1.1e-9};
// Half a round trip between two nodes: 36 to 67 us were measured on loopback, and a switch adds to it.
inline constexpr double kAssumedTripSeconds = 75e-6;

// Coding sums takes as long as they have planes: of N members' codes with a share z of zeros
//   planes(N, z) = min(N, kReach * sqrt(N (1 - z))),
// the largest sum that half a million of them hold. Measured for N = 2 to 64 and z = 0.68, 0.92: within a quarter up
// to N = 8, within a half beyond (there the sums' work grows faster than their planes).
inline constexpr double kReach = 6;
double planes(std::size_t members, double zeros);
// The other kernels take the same everywhere, within a fifth: from 0.5 M to 25 M elements, for all zeros and members.
KernelCosts costs_at(const KernelCosts& measured, std::size_t members, double zeros);

// Each further thread of an exchange adds this share of the first one's speed: they share a memory. Two on two cores
// took AlexNet's work alone from 116 ms to 60.
inline constexpr double kFurtherThread = 0.9;
inline constexpr double crew_speed_up(double workers) { return workers <= 1 ? 1 : 1 + kFurtherThread * (workers - 1); }

struct Machine {
  KernelCosts kernels;
  std::vector<schema::ComputeRate> compute;  // measured on `threads`
  bool on_device = false;                    // it computes there: beside the processor, and no faster for more cores
  double cores = 1, threads = 1;
  double trip_seconds = kAssumedTripSeconds;  // a frame to a peer and its handling there
};

// An error where the measurement lacks a kernel, as one of another version may.
Result<Machine> machine_of(const schema::BenchReply& bench);

std::vector<schema::KernelRate> rates_of(KernelCosts costs);

}  // namespace tg::daemon
