#include "kernels/cuda/device_memory_space.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/base/check.h"
#include "kernels/cuda/functions.h"
#include "kernels/require.h"

namespace tg::kernels::cuda {
namespace {

// Bytes that copy_in and copy_out move at a time. A copy of 1 MiB runs at 45 GB/s, one of any size at 55; the copy
// beside it, to or from page-locked memory, takes longer than either.
constexpr std::size_t kCopyPiece = 1 << 20;

ConstStateAt address_of(const ConstStateFloats& state) {
  return {state.parameters.address(), state.slot0.address(), state.slot1.address()};
}
StateAt address_of(const StateFloats& state) {
  return {state.parameters.address(), state.slot0.address(), state.slot1.address()};
}

// Becomes spans only for the check of sizes.
void require_state(OptimizerKind kind, std::size_t elements, const ConstStateFloats& from, const StateFloats& to) {
  const auto span = [](auto floats) { return std::span(floats.address(), floats.size()); };
  kernels::require_state(kind, elements, {span(from.parameters), span(from.slot0), span(from.slot1)},
                         {span(to.parameters), span(to.slot0), span(to.slot1)});
}

// Allocates the array, or throws an error that says what it needs, what there is, and what to change.
template <class Array>
Array taken(std::size_t count) {
  try {
    return Array(count);
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(std::string(e.what()) +
                      "; stop what else runs there (nvidia-smi shows what uses the device), or choose a smaller model, "
                      "optimizer = sgd or a micro-batch");
  }
}

// Memory that grows to the largest piece seen. Its contents are lost when it grows.
template <class Array>
Array& grow(Array& array, std::size_t bytes) {
  if (array.size() < bytes) {
    array = {};  // released first, or both would exist for a moment
    array = taken<Array>(bytes);
  }
  return array;
}

class DeviceTensorKernels final : public TensorKernels {
 public:
  explicit DeviceTensorKernels(int device) : device_(device) {}

  void copy_in(std::span<const std::byte> from, Floats to) override {
    require_same_size(to.size() * sizeof(float), from.size());
    begin();
    std::byte* const address = reinterpret_cast<std::byte*>(to.address());
    for (std::size_t at = 0; at < from.size(); at += kCopyPiece) {
      const std::size_t bytes = std::min(kCopyPiece, from.size() - at);
      std::byte* const staged = grow(staging_, bytes).data();
      std::memcpy(staged, from.data() + at, bytes);
      to_device(address + at, staged, bytes);
      stream_.synchronize("copy_in");
    }
  }

  void copy_out(ConstFloats from, std::span<std::byte> to) override {
    require_same_size(from.size() * sizeof(float), to.size());
    begin();
    const std::byte* const address = reinterpret_cast<const std::byte*>(from.address());
    for (std::size_t at = 0; at < to.size(); at += kCopyPiece) {
      const std::size_t bytes = std::min(kCopyPiece, to.size() - at);
      std::byte* const staged = grow(staging_, bytes).data();
      to_host(staged, address + at, bytes);
      stream_.synchronize("copy_out");
      std::memcpy(to.data() + at, staged, bytes);
    }
  }

  // Page-locked memory holds the table of slices, then the results. The device holds the table, the fold blocks' sums,
  // and their largest values.
  void statistics(std::span<const ConstFloats> slices, std::span<Statistics> results) override {
    TG_CHECK(slices.size() == results.size(), slices.size(), results.size());
    if (slices.empty()) return;
    begin();
    const std::size_t table_bytes = slices.size() * sizeof(MeasuredSlice);
    std::byte* const staged = grow(staging_, table_bytes + slices.size() * sizeof(Statistics)).data();
    auto* const table = reinterpret_cast<MeasuredSlice*>(staged);
    auto* const found = reinterpret_cast<Statistics*>(staged + table_bytes);
    std::size_t folds = 0, most_folds = 1;
    for (std::size_t s = 0; s < slices.size(); ++s) {
      require_whole(slices[s].size());
      table[s] = {slices[s].address(), slices[s].size(), folds};
      folds += folds_of(slices[s].size());
      most_folds = std::max(most_folds, folds_of(slices[s].size()));
    }
    const std::size_t lane_bytes = folds * kTotals * sizeof(float);
    const std::size_t table_room = (table_bytes + alignof(Floats4) - 1) / alignof(Floats4) * alignof(Floats4);
    std::byte* const room = grow(room_, table_room + lane_bytes + folds * sizeof(std::uint32_t)).data();
    const Partials partials{reinterpret_cast<float*>(room + table_room),
                            reinterpret_cast<std::uint32_t*>(room + table_room + lane_bytes)};
    to_device(room, staged, table_bytes);
    cuda::statistics(stream_.get(), reinterpret_cast<const MeasuredSlice*>(room), slices.size(), most_folds, partials,
                     found);
    stream_.synchronize("statistics");
    std::copy_n(found, slices.size(), results.begin());
  }

  void ternarize(ConstFloats gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                 Planes codes) override {
    require_whole(gradient.size());
    require_whole(first);
    require_same_size(gradient.size(), codes.nonzero.size() * kWordBits);
    require_same_size(gradient.size(), codes.negative.size() * kWordBits);
    if (gradient.size() == 0) return;
    begin();
    const std::size_t plane_bytes = gradient.size() / 8;
    std::byte* const planes = grow(room_, 2 * plane_bytes).data();
    std::byte* const staged = grow(staging_, 2 * plane_bytes).data();
    cuda::ternarize(stream_.get(), {.gradient = gradient.address(),
                                    .groups = gradient.size() / kBlock,
                                    .first_group = first / kBlock,
                                    .key = key,
                                    .rule = rule_of(scale),
                                    .nonzero = reinterpret_cast<std::uint16_t*>(planes),
                                    .negative = reinterpret_cast<std::uint16_t*>(planes + plane_bytes)});
    to_host(staged, planes, 2 * plane_bytes);
    stream_.synchronize("ternarize");
    std::memcpy(codes.nonzero.data(), staged, plane_bytes);
    std::memcpy(codes.negative.data(), staged + plane_bytes, plane_bytes);
  }

  void apply_sums(const Update& update, std::span<const std::int8_t> sums, const ConstStateFloats& from,
                  const StateFloats& to) override {
    require_state(update.kind, sums.size(), from, to);
    require_whole(sums.size());
    if (sums.empty()) return;
    begin();
    const std::byte* const source = send(std::as_bytes(sums));
    cuda::apply_sums(stream_.get(), update, {reinterpret_cast<const std::int8_t*>(source)}, sums.size(),
                     address_of(from), address_of(to));
    stream_.synchronize("apply_sums");
  }

  void apply_floats(const Update& update, std::span<const float> sums, const ConstStateFloats& from,
                    const StateFloats& to) override {
    require_state(update.kind, sums.size(), from, to);
    require_whole(sums.size());
    if (sums.empty()) return;
    begin();
    const std::byte* const source = send(std::as_bytes(sums));
    cuda::apply_floats(stream_.get(), update, {reinterpret_cast<const float*>(source)}, sums.size(), address_of(from),
                       address_of(to));
    stream_.synchronize("apply_floats");
  }

  void apply_planes(const Update& update, std::span<const ConstPlanes> codes, const ConstStateFloats& from,
                    const StateFloats& to) override {
    const std::size_t elements = from.parameters.size(), plane_bytes = elements / 8;
    require_state(update.kind, elements, from, to);
    require_whole(elements);
    require_received({{}, codes}, elements);
    if (elements == 0) return;
    begin();
    std::byte* staged = grow(staging_, codes.size() * 2 * plane_bytes).data();
    for (const ConstPlanes& one : codes) {
      for (const std::span<const std::uint64_t> plane : {one.nonzero, one.negative}) {
        std::memcpy(staged, plane.data(), plane_bytes);
        staged += plane_bytes;
      }
    }
    std::byte* const planes = grow(room_, codes.size() * 2 * plane_bytes).data();
    to_device(planes, staging_.data(), codes.size() * 2 * plane_bytes);
    cuda::apply_planes(
        stream_.get(), update,
        {reinterpret_cast<const std::uint8_t*>(planes), plane_bytes, static_cast<unsigned>(codes.size())}, elements,
        address_of(from), address_of(to));
    stream_.synchronize("apply_planes");
  }

  void add_scaled(ConstFloats parameters, float factor, Floats gradient) override {
    require_same_size(gradient.size(), parameters.size());
    require_whole(gradient.size());
    if (gradient.size() == 0) return;
    begin();
    cuda::add_scaled(stream_.get(), parameters.address(), factor, gradient.address(), gradient.size());
    stream_.synchronize("add_scaled");
  }

  void average(ConstFloats parameters, float rate, Floats average) override {
    require_same_size(average.size(), parameters.size());
    require_whole(average.size());
    if (average.size() == 0) return;
    begin();
    cuda::average(stream_.get(), parameters.address(), rate, average.address(), average.size());
    stream_.synchronize("average");
  }

  std::uint64_t digest(ConstFloats values, std::uint64_t first, std::uint64_t salt) override {
    require_whole(values.size());
    if (values.size() == 0) return 0;
    begin();
    const unsigned blocks = digest_blocks(values.size());
    auto* const sums = reinterpret_cast<std::uint64_t*>(grow(staging_, blocks * sizeof(std::uint64_t)).data());
    cuda::digest(stream_.get(), {values.address(), values.size(), first, salt}, sums);
    stream_.synchronize("digest");
    return std::accumulate(sums, sums + blocks, std::uint64_t{0});
  }

 private:
  void begin() const { TG_CUDA(cudaSetDevice(device_)); }

  static void require_whole(std::size_t elements) { TG_CHECK(elements % kBlock == 0, elements); }

  void to_device(void* to, const void* from, std::size_t bytes) {
    TG_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()));
  }
  void to_host(void* to, const void* from, std::size_t bytes) {
    TG_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_.get()));
  }
  // Copies the bytes to the device.
  const std::byte* send(std::span<const std::byte> bytes) {
    std::memcpy(grow(staging_, bytes.size()).data(), bytes.data(), bytes.size());
    to_device(grow(room_, bytes.size()).data(), staging_.data(), bytes.size());
    return room_.data();
  }

  const int device_;
  const Stream stream_{Urgency::kFirst};  // data for other nodes must not wait for the engine
  PinnedArray<std::byte> staging_;
  DeviceArray<std::byte> room_;
};

std::string name_of(int device) {
  TG_CUDA(cudaSetDevice(device));
  int major = 0, minor = 0;
  TG_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  TG_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return "cuda sm_" + std::to_string(major) + std::to_string(minor);
}

}  // namespace

DeviceMemorySpace::DeviceMemorySpace(int device) : device_(device), name_(name_of(device)) {}

std::unique_ptr<TensorKernels> DeviceMemorySpace::make_kernels() {
  TG_CUDA(cudaSetDevice(device_));
  return std::make_unique<DeviceTensorKernels>(device_);
}

Floats DeviceMemorySpace::allocate(std::size_t count) {
  TG_CUDA(cudaSetDevice(device_));
  auto array = taken<DeviceArray<float>>(count);
  const Stream stream(Urgency::kFirst);
  TG_CUDA(cudaMemsetAsync(array.data(), 0, count * sizeof(float), stream.get()));
  stream.synchronize("allocate");
  const Floats floats(array.data(), count);
  const std::lock_guard lock(mutex_);
  arrays_.emplace(floats.address(), std::move(array));
  return floats;
}

void DeviceMemorySpace::release(Floats floats) {
  const std::lock_guard lock(mutex_);
  const bool was_given_out = arrays_.erase(floats.address()) == 1;
  TG_CHECK(was_given_out, floats.address(), floats.size());
}

HostArray DeviceMemorySpace::allocate_host(std::size_t count) {
  TG_CUDA(cudaSetDevice(device_));
  return cuda::allocate_host(count);
}

}  // namespace tg::kernels::cuda
