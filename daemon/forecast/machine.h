// A node as predictions see it: what it takes per element, per frame and per trip. Made from what `bench` measured
// (schema::BenchReply), corrected by a calibration. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/forecast/codec_costs.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

// CodecCosts at one share of zeros, for sums of so many members, with arrays of so many elements.
struct CodecPoint {
  double zeros = 0;
  std::size_t members = 0;
  std::size_t elements = 0;
  CodecCosts costs;
};

struct Machine {
  std::vector<CodecPoint> codec;  // every pair of some shares and some numbers of members, with the smallest arrays
  std::vector<CodecPoint> large;  // with larger ones, ascending: only what passes over whole arrays counts
  std::vector<schema::ComputeRate> compute;
  double cores = 1, threads = 1;          // compute was measured on `threads`
  double workers = 1, crew_speed_up = 1;  // of the exchange: so many threads over one
  double trip_seconds = 0;                // a frame to a peer and its handling there
  double cpu_factor = 1;                  // on everything that the exchange does on a processor
};

// Handling a frame beside its payload: queues on each side, wake-ups, headers, system calls. As kByteSeconds.
inline constexpr double kFrameSeconds = 22e-6;

// Interpolated: linear in zeros and in the logarithms of members and of the model's parameters, no further than what
// was measured.
CodecCosts costs_at(const Machine& machine, double zeros, std::size_t members, std::size_t parameters);

// How many parameters lie in the caches that hold a node's model: nodes of fewer cores than the machine has are taken
// to share it, and then its last cache holds the models of all of them.
std::size_t parameters_in_caches(const Machine& machine, double cores, std::size_t parameters);

// How much sooner the threads that so many cores allow are done with an exchange's kernels than one: as measured, and
// in proportion for other numbers of threads.
double crew_speed_up(const Machine& machine, double cores);

// Both ways between a measurement and its rows.
std::vector<schema::KernelRate> rates_of(const CodecPoint& point);
std::vector<CodecPoint> points_of(const std::vector<schema::KernelRate>& rates);

// An error where the measurement lacks a kernel, as one of another version may.
Result<Machine> machine_of(const schema::BenchReply& bench);

}  // namespace tg::daemon
