// A batch's images on their way to the device before the forward pass that wants them. They come on the copy stream
// into memory of their own, and forward copies them on the device to where the network reads them: twice the size of a
// batch at the device's bandwidth (77 MB: 55 us on an H100, where they take 1.4 ms to come). So captured passes always
// read them at one address; two inputs in turns would need a graph for each, beside those for each place of the
// parameters.
//
// One thread at a time, as the engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/library.h"
#include "engine/engine.h"

namespace tg::engine::cuda {

class Prefetch {
 public:
  // floats: of a batch's images. The library outlives it.
  Prefetch(const Library& library, std::size_t floats) : library_(library), floats_(floats) {}
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  // Waits until nothing is copied any more.
  ~Prefetch();

  // Bytes on the device that bind needs. They outlive it.
  std::size_t bytes() const { return floats_ * sizeof(float); }
  void bind(std::byte* memory) { memory_ = reinterpret_cast<float*>(memory); }

  // Engine::prefetch.
  void start(const Batch& next);
  // Queues on the compute stream what brings the batch's images to `to`: from here if it was started with it, else from
  // the host. What else was started is dropped, and no longer read from then on.
  void take(const Batch& batch, float* to);

 private:
  // What a batch is known by.
  struct Key {
    const Batch* batch = nullptr;
    const float* images = nullptr;
    std::uint64_t first_position = 0;
    bool operator==(const Key&) const = default;
  };
  Key key_of(const Batch& batch) const;
  void drop();

  const Library& library_;
  const std::size_t floats_;
  float* memory_ = nullptr;
  Key started_;                           // no batch: nothing is here
  kernels::cuda::Event arrived_, taken_;  // on the copy stream; on the compute stream
};

}  // namespace tg::engine::cuda
