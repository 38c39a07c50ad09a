// The stages of a network (engine/network/stage.h) on a device. Descriptors are made in the constructors, algorithms
// are chosen once the buffers have their places, and the passes only launch: what they launch can be captured and
// launched again, so all that changes from step to step lies in device memory (Pass).
//
// Activations are float32, images NCHW: cuDNN's strict float32 kernels are up to 17 times slower in NHWC.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/cuda/arena.h"
#include "engine/cuda/library.h"
#include "engine/cuda/operators/elementwise.h"
#include "engine/cuda/operators/loss.h"
#include "engine/cuda/trials/trials.h"
#include "engine/network/stage.h"

namespace tg::engine::cuda {

// What the passes of a step are told: device memory, all of it.
struct Pass {
  const float* parameters = nullptr;  // the flat array, unchanged until the backward pass is over
  const float* statistics = nullptr;  // the running ones, in evaluation
  float* measured = nullptr;          // the batch's, in training: laid out as the running ones, 0 before forward
  const std::uint64_t* first_position = nullptr;  // the batch's position in the sample stream
  const std::int32_t* labels = nullptr;
  const double* class_weights = nullptr;  // null: 1 each
  int counted = 0;                        // samples that have labels, the first ones
  LossResult* results = nullptr;          // one per head
  const float* factor = nullptr;          // scales the gradient
};

class Stage;

// What stages and networks are made of here (engine/network/stage.h).
struct Cuda {
  using Library = cuda::Library;
  using Arena = cuda::Arena;
  using View = cuda::View;
  using Extent = std::size_t;  // bytes
  using Pass = cuda::Pass;
  using Stage = cuda::Stage;
  static constexpr bool kCanonicalImages = true;

  static Extent extent(int batch, const ImageShape& shape) {
    return static_cast<std::size_t>(batch) * shape.elements() * sizeof(float);
  }
  static void accumulate(const Library& library, std::size_t count, const View& from, const View& to) {
    cuda::accumulate(count, from.floats(), to.floats(), library.compute());
  }
  // What fails in the call names the operator.
  template <class Call>
  static auto of_operator(const std::string& name, const Call& call) {
    try {
      return call();
    } catch (const WorkspaceTooSmall&) {  // does so
      throw;
    } catch (const std::runtime_error& e) {
      const std::string said = e.what();
      throw std::runtime_error(said.starts_with(name) ? said : name + ": " + said);
    }
  }
};
using Activation = ActivationOf<Cuda::View>;
using StageContext = StageContextOf<Cuda>;

class Stage : public StageOf<Cuda> {
 public:
  explicit Stage(const StageContext& context);
  // Equal where the libraries' calls are (Trials::begin); empty: there are none.
  const std::string& layer() const { return layer_; }
  // Once, between construction and the first pass.
  virtual void choose(Trials& /*trials*/) {}

 private:
  const std::string layer_;
};

Planes planes_of(const StageContext& context, const ImageShape& shape);

// One each, for make_stage. A flatten is a view, and so is a dropout in evaluation: no stage is made of them.
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

}  // namespace tg::engine::cuda
