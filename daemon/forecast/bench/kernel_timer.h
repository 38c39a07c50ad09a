// Times the exchange's kernels, each once a round, in about a step's order, with arrays that no cache holds. Any
// thread, one at a time.
//
// Medians of some rounds count, since a step meets the same other programs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "daemon/forecast/machine.h"
#include "kernels/base/aligned_array.h"
#include "kernels/home_array.h"
#include "kernels/host_home.h"

namespace tg::daemon {

class KernelTimer {
 public:
  // elements: of each array, a multiple of kernels::kBlock. A stop is looked at between calls; rounds that it cut short
  // do not count. Throws where there is no memory. device: where gradient and state are, with further arrays as large
  // as the host's; null: in host memory.
  KernelTimer(const kernels::Kernels& kernels, std::size_t elements, std::stop_token stop,
              kernels::Home* device = nullptr);

  void round();
  KernelCosts medians() const;  // of each kernel over the rounds; all 0 if there are none

 private:
  kernels::Floats at_home(std::size_t array);  // one of arrays()
  std::array<AlignedArray<float>*, 5> arrays();
  void copy_to_device(kernels::Home& device);
  void draw_gradient();
  void prepare_sums();
  KernelCosts time_all();

  const kernels::Kernels& kernels_;
  const std::stop_token stop_;
  const std::size_t chunk_;
  kernels::HostHome host_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;  // of the device, if there is one
  AlignedArray<float> gradient_, parameters_from_, parameters_to_, slot_from_, slot_to_;
  AlignedArray<std::uint64_t> nonzero_, negative_;
  AlignedArray<std::int8_t> sums_, added_;
  std::vector<std::byte> payload_;
  std::vector<kernels::HomeArray> on_device_;  // the same arrays; empty: they are in host memory
  std::vector<KernelCosts> rounds_;
};

}  // namespace tg::daemon
