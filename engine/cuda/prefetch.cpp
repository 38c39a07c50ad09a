#include "engine/cuda/prefetch.h"

#include <exception>

#include "kernels/base/check.h"

namespace tg::engine::cuda {

Prefetch::~Prefetch() {
  try {
    drop();
  } catch (const std::exception&) {  // the device has failed; the engine's calls report it
  }
}

Prefetch::Key Prefetch::key_of(const Batch& batch) const {
  TG_CHECK(batch.images.size() == floats_, batch.images.size(), floats_);
  return {&batch, batch.images.data(), batch.first_position};
}

void Prefetch::drop() {
  if (started_.batch != nullptr) wait_for(arrived_.get());
  started_ = {};
}

void Prefetch::start(const Batch& next) {
  const Key key = key_of(next);
  if (started_ == key || !kernels::cuda::is_page_locked(key.images)) return;
  drop();
  const cudaStream_t stream = library_.copy();
  TG_CUDA(cudaStreamWaitEvent(stream, taken_.get(), 0));  // what was here before
  started_ = key;
  TG_CUDA(cudaMemcpyAsync(memory_, key.images, bytes(), cudaMemcpyHostToDevice, stream));
  TG_CUDA(cudaEventRecord(arrived_.get(), stream));
}

void Prefetch::take(const Batch& batch, float* to) {
  const Key key = key_of(batch);
  const cudaStream_t stream = library_.compute();
  if (started_ == key) {
    TG_CUDA(cudaStreamWaitEvent(stream, arrived_.get(), 0));
    TG_CUDA(cudaMemcpyAsync(to, memory_, bytes(), cudaMemcpyDeviceToDevice, stream));
    TG_CUDA(cudaEventRecord(taken_.get(), stream));
    started_ = {};
    return;
  }
  drop();
  TG_CUDA(cudaMemcpyAsync(to, key.images, bytes(), cudaMemcpyHostToDevice, stream));
}

}  // namespace tg::engine::cuda
