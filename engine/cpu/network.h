// A model's stages for one batch size (engine/network/network.h) on the CPU: images in, logits out, gradients back.
// Runs on the calling thread.
#pragma once

#include <span>
#include <vector>

#include "engine/cpu/stages/stage.h"
#include "engine/network/network.h"

namespace tg::engine::cpu {

class Network : public NetworkOf<Cpu> {
 public:
  Network(Library& library, const Model& model, const NetworkOptions& options);

  // images: `count` <= batch() samples, NCHW; a short batch is filled up with zeros. The logits of all batch() rows are
  // valid until the next forward or, in training, until backward.
  void forward(const Pass& pass, const float* images, int count, const Engine::SegmentGate& gate);
  std::span<const float> logits(std::size_t head) const;
  // Training only: the caller fills those of all heads between forward and backward.
  std::span<float> logits_gradient(std::size_t head);
  void backward(const Pass& pass, float* gradients, const Engine::SegmentSink& sink) {
    run_backward(pass, gradients, sink);
  }
  void read_statistics(float* measured) const;

 private:
  dnnl::memory images_;  // view of the caller's images, NCHW
  AlignedArray<float> short_batch_;
  Operation load_images_;
  std::vector<Activation> logits_;  // by head
};

}  // namespace tg::engine::cpu
