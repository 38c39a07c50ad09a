// What the exchange's kernels cost on this machine: measured before a run (codec_timer.h), so that the cost model of
// choose_exchange speaks of this processor, these instruction sets and this memory. Seconds per element unless said
// otherwise.
#pragma once

#include <array>
#include <cstddef>

#include "daemon/exchange/plan.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Share of zero codes that predictions expect: what LeNet and CifarNet have with c = 2.5, or what a
// replay was told to draw.
inline constexpr double kExpectedZeros = 0.92;
inline double expected_zeros(const schema::JobSpec& job) {
  return job.compute == "replay" && job.replay_gradients == "gaussian" ? job.replay_zeros : kExpectedZeros;
}

// Of TCP and ZeroMQ, for a byte of payload sent or taken. Profiles of replayed steps (LeNet to AlexNet, 2 to 8 nodes,
// on links that carry packets of a frame's size) are explained within 15 to 25 % by this and kFrameSeconds.
inline constexpr double kByteSeconds = 0.9e-9;

struct CodecCosts {
  double statistics = 0, ternarize = 0, accumulate = 0, apply = 0;
  // By coding (raw, entropy).
  double encode_codes[2] = {}, decode_codes[2] = {};
  double encode_sums[2] = {}, decode_sums[2] = {};
  double per_byte = kByteSeconds;
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
