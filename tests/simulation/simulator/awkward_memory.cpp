#include "tests/simulation/simulator/awkward_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/host_memory_space.h"

namespace tg::simulation {
namespace {

using kernels::ConstFloats;
using kernels::ConstStateFloats;
using kernels::Floats;
using kernels::StateFloats;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

template <class T>
std::span<T> here(const kernels::MemorySpan<T>& floats) {
  return {floats.address(), floats.size()};
}
kernels::ConstStateSpan here(const ConstStateFloats& state) {
  return {here(state.parameters), here(state.slot0), here(state.slot1)};
}
kernels::StateSpan here(const StateFloats& state) {
  return {here(state.parameters), here(state.slot0), here(state.slot1)};
}
AwkwardMemory::Ranges ranges_of(const ConstStateFloats& from, const StateFloats& to) {
  return {from.parameters, from.slot0, from.slot1, to.parameters, to.slot0, to.slot1};
}

class AwkwardKernels final : public kernels::TensorKernels {
 public:
  AwkwardKernels(AwkwardMemory& space, const kernels::HostKernels& kernels) : space_(space), kernels_(kernels) {}

  void copy_in(std::span<const std::byte> from, Floats to) override {
    TG_CHECK(from.size() == to.size() * sizeof(float), from.size(), to.size());
    const AwkwardMemory::Call call(space_, {to}, {from});
    if (!from.empty()) std::memcpy(to.address(), from.data(), from.size());
  }
  void copy_out(ConstFloats from, std::span<std::byte> to) override {
    TG_CHECK(to.size() == from.size() * sizeof(float), to.size(), from.size());
    const AwkwardMemory::Call call(space_, {from}, {to});
    if (!to.empty()) std::memcpy(to.data(), from.address(), to.size());
  }
  void statistics(std::span<const ConstFloats> slices, std::span<kernels::Statistics> results) override {
    const AwkwardMemory::Call call(space_, {slices.begin(), slices.end()}, {std::as_bytes(results)});
    TG_CHECK(slices.size() == results.size(), slices.size(), results.size());
    for (std::size_t s = 0; s < slices.size(); ++s) results[s] = kernels_.statistics(here(slices[s]));
  }
  void ternarize(ConstFloats gradient, std::size_t first, const kernels::DrawKey& key, const kernels::Scale& scale,
                 kernels::Planes codes) override {
    const AwkwardMemory::Call call(space_, {gradient}, {std::as_bytes(codes.nonzero), std::as_bytes(codes.negative)});
    kernels_.ternarize(here(gradient), first, key, scale, codes);
  }
  void apply_sums(const kernels::Update& update, std::span<const std::int8_t> sums, const ConstStateFloats& from,
                  const StateFloats& to) override {
    const AwkwardMemory::Call call(space_, ranges_of(from, to), {std::as_bytes(sums)});
    kernels_.apply_sums(update, sums, here(from), here(to));
  }
  void apply_floats(const kernels::Update& update, std::span<const float> sums, const ConstStateFloats& from,
                    const StateFloats& to) override {
    const AwkwardMemory::Call call(space_, ranges_of(from, to), {std::as_bytes(sums)});
    kernels_.apply_floats(update, sums, here(from), here(to));
  }
  void apply_planes(const kernels::Update& update, std::span<const kernels::ConstPlanes> codes,
                    const ConstStateFloats& from, const StateFloats& to) override {
    AwkwardMemory::HostSpans planes;
    for (const kernels::ConstPlanes& one : codes)
      planes.insert(planes.end(), {std::as_bytes(one.nonzero), std::as_bytes(one.negative)});
    const AwkwardMemory::Call call(space_, ranges_of(from, to), planes);
    TG_CHECK(kernels_.apply_codes(update, {{}, codes}, here(from), here(to)));
  }
  void add_scaled(ConstFloats parameters, float factor, Floats gradient) override {
    const AwkwardMemory::Call call(space_, {parameters, gradient}, {});
    kernels_.add_scaled(here(parameters), factor, here(gradient));
  }
  void average(ConstFloats parameters, float rate, Floats average) override {
    const AwkwardMemory::Call call(space_, {parameters, average}, {});
    kernels_.average(here(parameters), rate, here(average));
  }
  std::uint64_t digest(ConstFloats values, std::uint64_t first, std::uint64_t salt) override {
    const AwkwardMemory::Call call(space_, {values}, {});
    return kernels_.digest(here(values), first, salt);
  }

 private:
  AwkwardMemory& space_;
  const kernels::HostKernels& kernels_;
};

}  // namespace

// --- memory ---

AwkwardMemory::~AwkwardMemory() { TG_CHECK(allocations_.empty(), allocations_.size()); }

kernels::Floats AwkwardMemory::allocate(std::size_t count) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (count * sizeof(float) + page - 1) / page * page;
  void* const memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TG_CHECK(memory != MAP_FAILED, bytes);
  const std::lock_guard lock(mutex_);
  allocations_[number(memory)] = {count, bytes, 0};
  return {static_cast<float*>(memory), count};
}

void AwkwardMemory::release(kernels::Floats floats) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(number(floats.address()));
  TG_CHECK(found != allocations_.end() && found->second.calls == 0, floats.size());
  TG_CHECK(::munmap(floats.address(), found->second.mapped_bytes) == 0, found->second.mapped_bytes);
  allocations_.erase(found);
}

AwkwardMemory::Allocations::iterator AwkwardMemory::allocation_of(const kernels::ConstFloats& range) {
  const std::uintptr_t begin = number(range.address());
  auto found = allocations_.upper_bound(begin);  // the one after it
  const bool lies_in_space =
      found != allocations_.begin() &&
      begin + range.size() * sizeof(float) <= std::prev(found)->first + std::prev(found)->second.floats * sizeof(float);
  TG_CHECK(lies_in_space, range.address(), range.size());
  return std::prev(found);
}

void AwkwardMemory::require_outside(std::span<const std::byte> host_span) const {
  const std::uintptr_t begin = number(host_span.data()), end = begin + host_span.size();
  for (const auto& [address, allocation] : allocations_) {
    const bool lies_outside = end <= address || begin >= address + allocation.mapped_bytes;
    TG_CHECK(lies_outside, begin, host_span.size());
  }
}

void AwkwardMemory::protect(const Allocations::value_type& allocation, int protection) {
  TG_CHECK(::mprotect(reinterpret_cast<void*>(allocation.first), allocation.second.mapped_bytes, protection) == 0);
}

// --- calls ---

AwkwardMemory::Call::Call(AwkwardMemory& space, Ranges ranges, const HostSpans& host_spans)
    : space_(space), ranges_(std::move(ranges)) {
  if (++space.calls_ > space.last_call_) throw std::runtime_error("awkwardLaunchKernel: device lost");
  const std::lock_guard lock(space.mutex_);
  for (const std::span<const std::byte>& span : host_spans)
    if (!span.empty()) space.require_outside(span);
  for (const kernels::ConstFloats& range : ranges_) {
    if (range.size() == 0) continue;
    const auto found = space.allocation_of(range);
    if (found->second.calls++ == 0) protect(*found, PROT_READ | PROT_WRITE);
  }
}

AwkwardMemory::Call::~Call() {
  const std::lock_guard lock(space_.mutex_);
  for (const kernels::ConstFloats& range : ranges_) {
    if (range.size() == 0) continue;
    const auto found = space_.allocation_of(range);
    if (--found->second.calls == 0) protect(*found, PROT_NONE);
  }
}

std::unique_ptr<kernels::TensorKernels> AwkwardMemory::make_kernels() {
  return std::make_unique<AwkwardKernels>(*this, kernels_);
}

// --- choice ---

bool awkward_memory_asked_for() {
  static const bool asked = [] {
    const char* const name = std::getenv("TGD_TEST_MEMORY");
    if (name == nullptr || std::string_view(name) == "host") return false;
    TG_CHECK(std::string_view(name) == "awkward", name);
    return true;
  }();
  return asked;
}

std::unique_ptr<kernels::MemorySpace> space_under_test(const kernels::Kernels& kernels) {
  if (awkward_memory_asked_for()) return std::make_unique<AwkwardMemory>(kernels);
  return std::make_unique<kernels::HostMemorySpace>(kernels);
}

}  // namespace tg::simulation
