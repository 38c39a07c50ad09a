#include "kernels/host_memory_space.h"

#include <cstdlib>
#include <cstring>

#include "kernels/base/aligned_array.h"
#include "kernels/base/check.h"

namespace tg::kernels {
namespace {

// The one place where a range in this memory space becomes memory to read and write.
template <class T>
std::span<T> here(const MemorySpan<T>& floats) {
  return {floats.address(), floats.size()};
}
ConstStateSpan here(const ConstStateFloats& state) {
  return {here(state.parameters), here(state.slot0), here(state.slot1)};
}
StateSpan here(const StateFloats& state) { return {here(state.parameters), here(state.slot0), here(state.slot1)}; }

class HostTensorKernels final : public TensorKernels {
 public:
  explicit HostTensorKernels(const HostKernels& kernels) : kernels_(kernels) {}

  void copy_in(std::span<const std::byte> from, Floats to) override {
    TG_CHECK(from.size() == to.size() * sizeof(float), from.size(), to.size());
    if (!from.empty()) std::memcpy(to.address(), from.data(), from.size());
  }
  void copy_out(ConstFloats from, std::span<std::byte> to) override {
    TG_CHECK(to.size() == from.size() * sizeof(float), to.size(), from.size());
    if (!to.empty()) std::memcpy(to.data(), from.address(), to.size());
  }
  void statistics(std::span<const ConstFloats> slices, std::span<Statistics> results) override {
    TG_CHECK(slices.size() == results.size(), slices.size(), results.size());
    for (std::size_t s = 0; s < slices.size(); ++s) results[s] = kernels_.statistics(here(slices[s]));
  }
  void ternarize(ConstFloats gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                 Planes codes) override {
    kernels_.ternarize(here(gradient), first, key, scale, codes);
  }
  void apply_sums(const Update& update, std::span<const std::int8_t> sums, const ConstStateFloats& from,
                  const StateFloats& to) override {
    kernels_.apply_sums(update, sums, here(from), here(to));
  }
  void apply_floats(const Update& update, std::span<const float> sums, const ConstStateFloats& from,
                    const StateFloats& to) override {
    kernels_.apply_floats(update, sums, here(from), here(to));
  }
  void apply_planes(const Update& update, std::span<const ConstPlanes> codes, const ConstStateFloats& from,
                    const StateFloats& to) override {
    const bool right = kernels_.apply_codes(update, {{}, codes}, here(from), here(to));
    TG_CHECK(right, codes.size());  // planes cannot break a format
  }
  bool reads_payloads() const override { return true; }
  bool apply_payloads(const Update& update, const Received& received, const ConstStateFloats& from,
                      const StateFloats& to) override {
    return kernels_.apply_codes(update, received, here(from), here(to));
  }
  void add_scaled(ConstFloats parameters, float factor, Floats gradient) override {
    kernels_.add_scaled(here(parameters), factor, here(gradient));
  }
  void average(ConstFloats parameters, float rate, Floats average) override {
    kernels_.average(here(parameters), rate, here(average));
  }
  std::uint64_t digest(ConstFloats values, std::uint64_t first, std::uint64_t salt) override {
    return kernels_.digest(here(values), first, salt);
  }

 private:
  const HostKernels& kernels_;
};

}  // namespace

std::unique_ptr<TensorKernels> HostMemorySpace::make_kernels() { return std::make_unique<HostTensorKernels>(kernels_); }

Floats HostMemorySpace::allocate(std::size_t count) {
  return {static_cast<float*>(allocate_zeroed(count * sizeof(float))), count};
}

void HostMemorySpace::release(Floats floats) { std::free(floats.address()); }

}  // namespace tg::kernels
