// What one stage of a network does on a device, for one batch size: an operator with what is fused into it (plan.h).
// Descriptors are made in the constructors, algorithms are chosen once the buffers have their places, and the passes
// only launch: what they launch can be captured and launched again, so all that changes from step to step lies in
// device memory (Pass).
//
// Activations are float32, images NCHW: cuDNN's strict float32 kernels are up to 17 times slower in NHWC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/arena.h"
#include "engine/cuda/library.h"
#include "engine/cuda/operators/elementwise.h"
#include "engine/cuda/operators/loss.h"
#include "engine/cuda/trials/trials.h"
#include "engine/graph/plan.h"
#include "engine/model.h"

namespace tg::engine::cuda {

// gradient: of the loss with respect to the value; empty where nobody wants it.
struct Activation {
  ImageShape shape;
  View value, gradient;
};

// Where and how a stage is made.
struct StageContext {
  Library& library;
  Arena& arena;
  const Model& model;
  const StagePlan& plan;
  int batch;
  bool training;  // forward keeps what backward needs; gradients exist
  std::uint64_t seed;
  std::size_t forward_slot, backward_slot;
  // gradient: what backward_data fills. Where the stage only adds to an input's gradient, that is a buffer of its own,
  // which the network adds afterwards; add and concat do it themselves (adds_itself).
  std::vector<Activation> inputs;
  Activation output;

  const Operator& op() const { return model.operators[plan.op]; }
  const std::string& name() const { return op().name; }  // for errors: "conv1", "max pooling 3"
  bool wants(std::size_t input) const { return training && plan.contributions[input] != Contribution::kNone; }
  bool adds(std::size_t input) const { return plan.contributions[input] == Contribution::kAdds; }
  std::size_t floats(const ImageShape& shape) const { return static_cast<std::size_t>(batch) * shape.elements(); }
  Planes planes(const ImageShape& shape) const;
  // Memory for forward or backward alone, and memory from forward to backward.
  View forward_scratch(std::size_t bytes) const;
  View backward_scratch(std::size_t bytes) const;
  View kept(std::size_t bytes) const;
};

// Segment indices [first, last) whose gradients a stage computes.
struct SegmentRange {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

// What the passes of a step are told: device memory, all of it. Backward is told the same as its forward.
struct Pass {
  const float* parameters = nullptr;  // the flat array, unchanged until the backward pass is over
  const float* statistics = nullptr;  // the running ones, in evaluation
  float* measured = nullptr;          // the batch's, in training: laid out as the running ones, 0 before forward
  const std::uint64_t* first_position = nullptr;  // of the batch in the sample stream
  const std::int32_t* labels = nullptr;
  int counted = 0;                // samples that have labels, the first ones
  LossResult* results = nullptr;  // of each head
  const float* factor = nullptr;  // of the gradient
};

class Stage {
 public:
  explicit Stage(const StageContext& context);
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  SegmentRange segments() const { return segments_; }

  // Once, between construction and the first pass.
  virtual void choose(Trials& /*trials*/) {}
  virtual void forward(const Pass& pass) = 0;
  // First pass of a stage's backward: the output's gradient is complete; fills the stage's segments.
  virtual void backward_parameters(const Pass& /*pass*/, float* /*gradients*/) {}
  // Second: fills the inputs' gradients, where they are wanted.
  virtual void backward_data(const Pass& pass) = 0;

 private:
  SegmentRange segments_;
};

std::unique_ptr<Stage> make_stage(const StageContext& context);
bool adds_itself(const Operator& one);

// One each, for make_stage. A flatten is a view, and so is a dropout in evaluation: no stage is made of them.
std::unique_ptr<Stage> make(const StageContext& context, const Convolution& layer);
std::unique_ptr<Stage> make(const StageContext& context, const BatchNormalization& layer);
std::unique_ptr<Stage> make(const StageContext& context, const LocalResponseNormalization& layer);
std::unique_ptr<Stage> make(const StageContext& context, const MaxPooling& layer);
std::unique_ptr<Stage> make(const StageContext& context, const AveragePooling& layer);
std::unique_ptr<Stage> make(const StageContext& context, const AdaptiveAverage& layer);
std::unique_ptr<Stage> make(const StageContext& context, const Relu& layer);
std::unique_ptr<Stage> make(const StageContext& context, const Dense& layer);
std::unique_ptr<Stage> make(const StageContext& context, const Dropout& layer);
std::unique_ptr<Stage> make(const StageContext& context, const Concat& layer);
std::unique_ptr<Stage> make(const StageContext& context, const Add& layer);

}  // namespace tg::engine::cuda
