// A model's operators for one batch size, in order: images in, logits out, gradients back. Owns every activation; runs
// on the calling thread. The device is shared by the networks of an engine and outlives them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/cpu/operator.h"
#include "engine/engine.h"

namespace tg::engine::cpu {

class Network {
 public:
  Network(Device& device, const Model& model, int batch, bool training);

  int batch() const { return batch_; }
  // images: `count` <= batch() samples, NCHW; a short batch is filled up with zeros. The logits of all batch() rows,
  // valid until the next forward.
  std::span<const float> forward(const float* parameters, const float* images, int count,
                                 const Engine::SegmentGate& gate);
  // Training only: the caller fills this between forward and backward.
  std::span<float> logits_gradient();
  void backward(float* gradients, const Engine::SegmentSink& sink);

 private:
  void add(std::unique_ptr<Operator> next);
  OperatorContext context(const std::string& name) const;

  Device& device_;
  const Model& model_;
  const int batch_;
  const bool training_;
  dnnl::memory images_;  // view of the caller's images, NCHW
  AlignedArray<float> short_batch_;
  Operation load_images_;
  Activation input_;
  std::vector<std::unique_ptr<Operator>> operators_;
};

}  // namespace tg::engine::cpu
