// Times the exchange's kernels, in rounds: a round calls each kernel once, in about a step's order. Any thread, one at
// a time.
//
// A round is short, so that rounds of several timers (and of roofs) can be made in turns: a processor that others slow
// down for a second slows all of them, and their ratios stay. Medians count: a step, too, finds the processor as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "daemon/forecast/codec_costs.h"
#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::daemon {

// Elements of the longest array that measure_codec takes.
inline constexpr std::size_t kMeasuredElements = 2u << 20;

struct CodecTiming {
  std::function<void()> before_call = [] {};  // each of the calls that are timed, on the calling thread
  std::stop_token stop = {};                  // looked at between calls; the costs mean nothing then
};

// A gradient and both halves of parameters and momentum, all of one length, which is a multiple of kernels::kBlock. A
// timer may be given the beginning of another's, and change it.
struct CodecArrays {
  std::span<float> gradient, parameters_from, parameters_to, slot_from, slot_to;
  CodecArrays first(std::size_t elements) const;
};

// Magnitudes such that about `zeros` of the codes are zero at scaler 1, from a fixed seed. The length is a multiple of
// kernels::kBlock.
void draw_gradient(std::span<float> gradient, double zeros);

struct CodecSums {
  std::size_t members = 0;   // whose codes are added up
  bool past_caches = false;  // what is updated is written past the caches, as that of large models is
};

class CodecTimer {
 public:
  // The gradient is drawn already; kernels and arrays outlive the timer. Throws where there is no memory.
  CodecTimer(const kernels::Kernels& kernels, const CodecSums& sums, const CodecArrays& arrays, CodecTiming timing);

  void round();                // kept, unless it was stopped
  void warm_round();           // not kept: after it caches and pages are as a step leaves them
  CodecCosts medians() const;  // of each kernel over the rounds kept; all 0 if there are none

 private:
  CodecCosts time_all();
  void prepare_sums();

  const kernels::Kernels& kernels_;
  CodecSums what_;
  CodecArrays arrays_;
  CodecTiming timing_;
  std::size_t chunk_;
  AlignedArray<std::uint64_t> nonzero_, negative_;
  AlignedArray<std::int8_t> sums_, added_;
  std::vector<std::byte> payload_;
  std::vector<CodecCosts> rounds_;
};

// A model's codec, measured on arrays of min(parameters, most_elements).
struct CodecCase {
  std::size_t parameters = 0, members = 0;
  double zeros = 0;
  std::size_t most_elements = kMeasuredElements;
};

// About 80 ms. Throws where there is no memory.
CodecCosts measure_codec(const kernels::Kernels& kernels, const CodecCase& what, const CodecTiming& timing = {});

}  // namespace tg::daemon
