// The stages of a network (engine/network/stage.h) on the CPU. All primitives are made in the constructors, and all
// memory comes from the network's arena; the passes only run them.
//
// Activations that are images are NHWC: oneDNN 2.6's convolutions lose nothing there at 64 channels and gain 1.3 x at
// the 20 and 50 of LeNet, which its blocked layouts pad to 32 and 64; and a pixel's channels lie side by side, as our
// own kernels want them (lrn/lrn.h, windows.h). oneDNN's own LRN is 180 x slower when blocked, and for NHWC on AVX2 it
// has a reference only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/cpu/arena.h"
#include "engine/cpu/onednn.h"
#include "engine/network/stage.h"

namespace tg::engine::cpu {

// What a pass is told.
struct Pass {
  const float* parameters = nullptr;  // the flat array, unchanged until the backward pass is over
  const float* statistics = nullptr;  // the running ones, in evaluation
  std::uint64_t first_position = 0;   // the batch's position in the sample stream
};

class Stage;

// What stages and networks are made of here (engine/network/stage.h).
struct Cpu {
  using Library = cpu::Library;
  using Arena = cpu::Arena;
  using View = dnnl::memory;  // images where the buffer holds some
  using Extent = dnnl::memory::desc;
  using Pass = cpu::Pass;
  using Stage = cpu::Stage;
  static constexpr bool kCanonicalImages = false;

  static Extent extent(int batch, const ImageShape& shape);
  static void accumulate(const Library& library, std::size_t count, const View& from, const View& to);
  // oneDNN's errors name the operator (checked).
  template <class Call>
  static auto of_operator(const std::string& /*name*/, const Call& call) {
    return call();
  }
};
using Activation = ActivationOf<Cpu::View>;
using StageContext = StageContextOf<Cpu>;

class Stage : public StageOf<Cpu> {
 public:
  using StageOf::StageOf;
  // What the last forward measured, to the stage's places in the flat array of statistics.
  virtual void read_statistics(float* /*measured*/) const {}
};

// One each, for make_stage.
std::unique_ptr<Stage> make(const StageContext& context, const Convolution& layer);
std::unique_ptr<Stage> make(const StageContext& context, const BatchNormalization& layer);
std::unique_ptr<Stage> make(const StageContext& context, const LocalResponseNormalization& layer);
std::unique_ptr<Stage> make(const StageContext& context, const MaxPooling& layer);
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
