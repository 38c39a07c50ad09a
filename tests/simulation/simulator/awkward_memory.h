// A memory space for tests that stands in for a device: computes on the host, but its memory is out of reach. Each
// allocation is a mapping of its own that can be neither read nor written except while a call of its tensor kernels
// uses it: code that goes around them is killed by the first access. Every range that a call is given must lie whole
// inside one allocation of this memory space, every host span of it outside all of them; else the process stops. It
// cannot read raw payloads, as a device cannot. It can die as a device does: from then on every call throws. Any
// thread, as memory spaces are.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/memory_space.h"

namespace tg::simulation {

class AwkwardMemory final : public kernels::MemorySpace {
 public:
  explicit AwkwardMemory(const kernels::HostKernels& kernels) : kernels_(kernels) {}
  ~AwkwardMemory() override;  // all memory was given back

  std::string_view name() const override { return "awkward"; }
  std::unique_ptr<kernels::TensorKernels> make_kernels() override;
  kernels::Floats allocate(std::size_t count) override;
  void release(kernels::Floats floats) override;

  std::uint64_t calls() const { return calls_; }  // to its tensor kernels
  void die_after(std::uint64_t calls) { last_call_ = calls_ + calls; }
  bool dead() const { return calls_ > last_call_; }

  using Ranges = std::vector<kernels::ConstFloats>;  // empty ones lie anywhere
  using HostSpans = std::vector<std::span<const std::byte>>;
  // A call of a tensor kernel: what it uses of this memory space is there until it ends, however many others use it
  // too.
  class Call {
   public:
    Call(AwkwardMemory& space, Ranges ranges, const HostSpans& host_spans);
    ~Call();

   private:
    AwkwardMemory& space_;
    const Ranges ranges_;
  };

 private:
  struct Allocation {
    std::size_t floats = 0, mapped_bytes = 0;
    std::size_t calls = 0;  // in flight that use it
  };
  using Allocations = std::map<std::uintptr_t, Allocation>;  // by address
  Allocations::iterator allocation_of(const kernels::ConstFloats& range);
  void require_outside(std::span<const std::byte> host_span) const;
  static void protect(const Allocations::value_type& allocation, int protection);

  const kernels::HostKernels& kernels_;
  std::atomic<std::uint64_t> calls_{0}, last_call_{std::numeric_limits<std::uint64_t>::max()};
  std::mutex mutex_;  // guards what follows
  Allocations allocations_;
};

// The memory space of everything that the simulator trains, over these kernels: the host's, or the awkward one where
// the environment says TGD_TEST_MEMORY=awkward.
std::unique_ptr<kernels::MemorySpace> space_under_test(const kernels::Kernels& kernels);
bool awkward_memory_asked_for();

}  // namespace tg::simulation
