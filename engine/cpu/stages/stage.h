// What one stage of a network does on the CPU, for one batch size: an operator with what is fused into it (plan.h). All
// primitives are made in the constructors, and all memory comes from the network's arena; the passes only run them.
//
// Activations that are images are NHWC: oneDNN 2.6's convolutions lose nothing there at 64 channels and gain 1.3 x at
// the 20 and 50 of LeNet, which its blocked layouts pad to 32 and 64; and a pixel's channels lie side by side, as our
// own kernels want them (lrn/lrn.h, windows.h). oneDNN's own LRN is 180 x slower when blocked, and for NHWC on AVX2 it
// has a reference only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/arena.h"
#include "engine/cpu/onednn.h"
#include "engine/graph/plan.h"
#include "engine/model.h"

namespace tg::engine::cpu {

// Views in the arena, as images. gradient: of the loss with respect to the value; empty where nobody wants it.
struct Activation {
  dnnl::memory value, gradient;
};

// Where and how a stage is made.
struct StageContext {
  Device& device;
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
  bool wants_any() const;
  bool adds(std::size_t input) const { return plan.contributions[input] == Contribution::kAdds; }
  // Memory for forward or backward alone, and memory from forward to backward.
  dnnl::memory forward_scratch(const dnnl::memory::desc& desc) const;
  dnnl::memory backward_scratch(const dnnl::memory::desc& desc) const;
  dnnl::memory kept(const dnnl::memory::desc& desc) const;
};

// Segment indices [first, last) whose gradients a stage computes.
struct SegmentRange {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

// What a pass is told.
struct Pass {
  const float* parameters = nullptr;  // the flat array, unchanged until the backward pass is over
  const float* statistics = nullptr;  // the running ones, in evaluation
  std::uint64_t first_position = 0;   // of the batch in the sample stream
};

class Stage {
 public:
  explicit Stage(const StageContext& context);
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  SegmentRange segments() const { return segments_; }

  virtual void forward(const Pass& pass) = 0;
  // First pass of a stage's backward: the output's gradient is complete; fills the stage's segments.
  virtual void backward_parameters(float* /*gradients*/) {}
  // Second: fills the inputs' gradients, where they are wanted.
  virtual void backward_data() = 0;
  // What the last forward measured, to the stage's places in the flat array of statistics.
  virtual void read_statistics(float* /*measured*/) const {}

 private:
  SegmentRange segments_;
};

std::unique_ptr<Stage> make_stage(const StageContext& context);
bool adds_itself(const Operator& one);

// One each, for make_stage.
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
// NHWC images to rows in C, H, W order, which is what a dense layer's weights expect.
std::unique_ptr<Stage> make(const StageContext& context, const Flatten& layer);

// Helpers of the stages.
dnnl::memory::desc image_desc(const dnnl::memory::dims& dims);  // N, C, H, W; float32 stored NHWC
dnnl::memory::desc row_desc(const dnnl::memory::dims& dims);    // float32, row-major
float* floats_of(const dnnl::memory& memory);
std::size_t float_count(const dnnl::memory& memory);
// to = gradient of `of`, where the value of `of` is above 0; to may be that gradient itself.
Operation make_relu_mask(const StageContext& context, const Activation& of, const dnnl::memory& to);

// A segment or statistic inside a flat array as oneDNN sees it.
class SegmentView {
 public:
  SegmentView() = default;
  SegmentView(const StageContext& context, const Segment& segment);
  // In another shape of as many elements.
  SegmentView(const StageContext& context, const Segment& segment, const dnnl::memory::dims& dims);
  void bind(const float* flat) { point(memory_, flat + offset_); }
  const dnnl::memory& memory() const { return memory_; }

 private:
  dnnl::memory memory_;
  std::size_t offset_ = 0;
};

}  // namespace tg::engine::cpu
