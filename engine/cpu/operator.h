// What one layer does on the CPU, for one batch size: operators form a chain, each reads the activation before it and
// owns the one after it. All buffers and primitives are made in the constructors; the three passes only run them.
//
// Activations that are images are NHWC: oneDNN 2.6's convolutions lose nothing there at 64 channels and gain 1.3 x at
// the 20 and 50 of LeNet, which its blocked layouts pad to 32 and 64; and a pixel's channels lie side by side, as our
// LRN wants them (lrn/lrn.h). oneDNN's own is 180 x slower when blocked, and for NHWC on AVX2 it has a reference only.
#pragma once

#include <memory>
#include <string>

#include "engine/cpu/onednn.h"
#include "engine/model.h"

namespace tg::engine::cpu {

// value: what the layer gives. gradient: of the loss with respect to the value; empty in evaluation and for the images.
struct Activation {
  dnnl::memory value;
  dnnl::memory gradient;
};

// Where and how an operator is made.
struct OperatorContext {
  Device& device;
  const SegmentTable& segments;
  std::string name;          // for errors: "conv1", "layer 3"
  const Activation& input;   // outlives the operator
  bool training = false;     // forward keeps what backward needs; gradients exist
  bool input_wants = false;  // the input's gradient is wanted: false for what follows the images
};

// Segment indices [first, last) whose gradients an operator computes.
struct SegmentRange {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

class Operator {
 public:
  virtual ~Operator() = default;
  virtual SegmentRange segments() const { return {}; }
  const Activation& output() const { return output_; }

  // parameters: the flat array, unchanged until the backward passes are over.
  virtual void forward(const float* parameters) = 0;
  // First pass of an operator's backward: output().gradient is complete; fills the operator's segments.
  virtual void backward_parameters(float* /*gradients*/) {}
  // Second: fills the input's gradient, if wanted.
  virtual void backward_data() = 0;

 protected:
  Activation output_;
};

// relu: fused into the layer. mask: the output's gradient still lacks the factor relu'(x); whoever reads
// it first multiplies it in. Max pooling and relu commute (a maximum is positive where its source is), so behind a
// pooling the mask is applied to a quarter of the elements, by the pooling.
std::unique_ptr<Operator> make_convolution(const OperatorContext& context, const Convolution& layer, bool relu,
                                           bool mask);
std::unique_ptr<Operator> make_max_pooling(const OperatorContext& context, const MaxPooling& layer, bool mask);
std::unique_ptr<Operator> make_normalization(const OperatorContext& context, const LocalResponseNormalization& layer);
// In place: shares the input's activation.
std::unique_ptr<Operator> make_relu(const OperatorContext& context);
// NHWC images to rows in C, H, W order, which is what a dense layer's weights expect.
std::unique_ptr<Operator> make_flatten(const OperatorContext& context);
std::unique_ptr<Operator> make_dense(const OperatorContext& context, const Dense& layer, bool relu);

// Helpers of the operators.
dnnl::memory::desc image_desc(const dnnl::memory::dims& dims);  // N, C, H, W; float32 stored NHWC
dnnl::memory::desc row_desc(const dnnl::memory::dims& dims);    // float32, row-major
Activation make_activation(const OperatorContext& context, const dnnl::memory::desc& desc);
// gradient *= (value > 0), in place.
Operation make_relu_mask(const OperatorContext& context, const Activation& activation);

// A segment inside a flat array as oneDNN sees it.
class SegmentView {
 public:
  SegmentView() = default;
  SegmentView(const OperatorContext& context, std::size_t segment);
  void bind(const float* flat) { point(memory_, flat + offset_); }
  const dnnl::memory& memory() const { return memory_; }

 private:
  dnnl::memory memory_;
  std::size_t offset_ = 0;
};

}  // namespace tg::engine::cpu
