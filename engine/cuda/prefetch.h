// Copies a batch's images to the device before the forward pass that needs them. They arrive on the copy stream in
// memory of their own, and forward copies them on the device to where the network reads them: twice the size of a
// batch at the device's bandwidth (77 MB: 55 us on an H100, where the transfer takes 1.4 ms). So captured passes always
// read them at one address; two alternating inputs would need a graph for each, besides those for each place of the
// parameters.
//
// One thread at a time, like the engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/library.h"
#include "engine/engine.h"

namespace tg::engine::cuda {

class Prefetch {
 public:
  // floats: the size of a batch's images. The library must outlive this object.
  Prefetch(const Library& library, std::size_t floats) : library_(library), floats_(floats) {}
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  // Waits until all copies are done.
  ~Prefetch();

  // Bytes on the device that bind() needs. They must outlive this object.
  std::size_t bytes() const { return floats_ * sizeof(float); }
  void bind(std::byte* memory) { memory_ = reinterpret_cast<float*>(memory); }

  // Implements Engine::prefetch.
  void start(const Batch& next);
  // Queues on the compute stream the copy of the batch's images to `to`: from here if start() was called for it, else
  // from the host. Another batch that was started is dropped, and its images are no longer read afterwards.
  void take(const Batch& batch, float* to);
  // Implements Engine::forget_prefetch.
  void drop();

 private:
  // Identifies a batch.
  struct Key {
    const Batch* batch = nullptr;
    const float* images = nullptr;
    std::uint64_t first_position = 0;
    bool operator==(const Key&) const = default;
  };
  Key key_of(const Batch& batch) const;

  const Library& library_;
  const std::size_t floats_;
  float* memory_ = nullptr;
  Key started_;                           // the default key: no batch is here
  kernels::cuda::Event arrived_, taken_;  // arrived_ is on the copy stream, taken_ on the compute stream
};

}  // namespace tg::engine::cuda
