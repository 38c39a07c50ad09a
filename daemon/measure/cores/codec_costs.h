// What the exchange's kernels cost on this machine: measured before a run, so that the cost model of choose_exchange
// speaks of this processor, these instruction sets and this memory. Seconds per element unless said otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <stop_token>

#include "daemon/exchange/plan/plan.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Share of zero codes that predictions expect: what LeNet and CifarNet have with c = 2.5, or what a
// replay was told to draw.
inline constexpr double kExpectedZeros = 0.92;
inline double expected_zeros(const schema::JobSpec& job) {
  return job.compute == "replay" && job.replay_gradients == "gaussian" ? job.replay_zeros : kExpectedZeros;
}

struct CodecCosts {
  double statistics = 0, ternarize = 0, accumulate = 0, apply = 0;
  // By coding (raw, entropy).
  double encode_codes[2] = {}, decode_codes[2] = {};
  double encode_sums[2] = {}, decode_sums[2] = {};
  double per_byte = 0.3e-9;  // of the kernel's TCP and ZeroMQ, sent or received: 0.3 s per GB and direction
};

// The kernels of CodecCosts, each with its name in reports.
struct KernelCost {
  const char* name;
  double* (*field)(CodecCosts&);
};

inline constexpr std::array<KernelCost, 12> kKernelCosts = {{
    {"statistics", [](CodecCosts& c) { return &c.statistics; }},
    {"ternarize", [](CodecCosts& c) { return &c.ternarize; }},
    {"accumulate", [](CodecCosts& c) { return &c.accumulate; }},
    {"apply", [](CodecCosts& c) { return &c.apply; }},
    {"encode-codes-raw", [](CodecCosts& c) { return &c.encode_codes[0]; }},
    {"decode-codes-raw", [](CodecCosts& c) { return &c.decode_codes[0]; }},
    {"encode-codes-entropy", [](CodecCosts& c) { return &c.encode_codes[1]; }},
    {"decode-codes-entropy", [](CodecCosts& c) { return &c.decode_codes[1]; }},
    {"encode-sums-raw", [](CodecCosts& c) { return &c.encode_sums[0]; }},
    {"decode-sums-raw", [](CodecCosts& c) { return &c.decode_sums[0]; }},
    {"encode-sums-entropy", [](CodecCosts& c) { return &c.encode_sums[1]; }},
    {"decode-sums-entropy", [](CodecCosts& c) { return &c.decode_sums[1]; }},
}};

inline constexpr std::size_t kMeasuredElements = 2u << 20;
struct CodecTiming {
  std::size_t most_elements = kMeasuredElements;
  std::function<void()> before_round = [] {};  // each of the calls that are timed, on the calling thread
  std::stop_token stop = {};                   // looked at between them; the costs mean nothing then
};

// Times each kernel on arrays of min(parameters, most_elements), drawn with this share of zeros; about 80 ms. Throws
// where there is no memory.
CodecCosts measure_codec(const kernels::Kernels& kernels, std::size_t parameters, std::size_t members, double zeros,
                         const CodecTiming& timing = {});

// Seconds of one member's kernels in a step of this plan, by what they do.
struct CodecSeconds {
  double encode = 0;   // statistics, codes made and coded, sums coded
  double decode = 0;   // codes and sums of others, and their adding up
  double apply = 0;    // the update
  double network = 0;  // the kernel's TCP and ZeroMQ
  double total() const { return encode + decode + apply + network; }
};
CodecSeconds codec_parts(const Plan& plan, const CodecCosts& costs, double zeros);
double codec_seconds(const Plan& plan, const CodecCosts& costs, double zeros);

}  // namespace tg::daemon
