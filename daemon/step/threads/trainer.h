// The compute thread of a run: makes what it trains with (Prepare), then does forward, backward and evaluations as
// told, one order at a time, and reports through the hooks (called on the compute thread; they must not block).
//
// The gradient array belongs to the trainer; between train() and the step's commit its buckets are read by the
// exchange's threads as they are reported. On destruction the thread ends as soon as anything got done: a layer, a
// sample. What takes longer cannot be interrupted: it gets kPatience to come back, then the thread is left behind
// (left_behind.h) with everything it may touch: it holds its own references, and never calls a hook again. The home of
// its arrays and the progress must outlive even that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/exchange/layout.h"
#include "daemon/step/replica.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/step/threads/progress.h"
#include "daemon/step/threads/timeline.h"
#include "engine/dataset.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "kernels/home_array.h"
#include "schema/options/job.h"

namespace tg::daemon {

// What is prepared once for a run; immutable afterwards and shared with the node's thread. Only the replica changes, by
// the rules of its header.
struct Prepared {
  engine::Model model;
  std::shared_ptr<const engine::Dataset> data;
  engine::Recipe recipe;  // how its samples become the model's input
  std::shared_ptr<Replica> replica;
  std::uint64_t data_hash = 0, model_hash = 0;
  std::uint64_t initial_digest = 0;  // of the state that the run, or its resume, begins with
  std::uint64_t threads = 0;
  std::vector<std::string> initial_notes;  // for the log, where the parameters were not drawn
  std::string description;                 // for the artefacts (run/description.h); empty when gradients are replayed
};

// What is prepared for a view: an engine for this member's share of a batch.
struct PreparedView {
  std::shared_ptr<const Prepared> run;
  std::uint32_t local_batch = 0;       // samples of a step that are this member's
  std::uint64_t activation_bytes = 0;  // of the engine, and its batches of samples
  std::uint64_t device_bytes = 0;      // of them, of state and gradient: what lies on a device
  std::uint64_t device_reserve = 0;    // and beside that: what is kept free there (run/memory_check.h)
  double step_seconds = 0;             // measured: their forward + backward
  std::string engine_build, engine_choices;
};

// Samples of an evaluation batch, at most: it is progress when one is done, and larger samples take longer.
inline int evaluation_samples(const engine::ImageShape& input) {
  constexpr std::size_t kMost = 250, kMostBytes = 32u << 20;
  return static_cast<int>(
      std::clamp<std::size_t>(kMostBytes / (std::max<std::size_t>(input.elements(), 1) * sizeof(float)), 1, kMost));
}

// What a compute thread trains with, all in one home.
struct TrainingKit {
  std::shared_ptr<const Prepared> prepared;
  std::shared_ptr<const PreparedView> view;
  std::unique_ptr<kernels::TensorKernels> tensors;  // the compute thread's
  kernels::HomeArray gradients;
  std::unique_ptr<engine::BatchSource> batches;  // empty when gradients are replayed: no data then
  std::unique_ptr<engine::Engine> engine;        // goes first: it may be copying a batch
};

class Trainer {
 public:
  // Called first, on the compute thread; calls advance() whenever something got done, and lets pass what that throws:
  // the trainer is gone.
  using Prepare = std::function<Result<TrainingKit>(const std::function<void()>& advance)>;
  struct Hooks {
    std::function<void(Result<std::shared_ptr<const PreparedView>>)> prepared;
    std::function<void(StepEvent&&)> happened;  // GradientReady, Evaluated, EngineFailed
  };
  struct Options {
    schema::JobSpec job;
    Rank self;
    Per<Rank, std::uint16_t> weights;  // of all members' shares
    std::uint64_t global_batch = 0;    // of the run
    std::string run = {};              // its id, for people
  };
  // Starts the thread, which prepares at once.
  Trainer(Options options, Prepare prepare, Progress& progress, const FaultInjection& fault,
          std::shared_ptr<Timeline> timeline, Hooks hooks);
  ~Trainer();

  // Forward and backward of a step; one order at a time, the next one from the last GradientReady on. Weight decay
  // inside the ternary path is added here, whole, by each member. early: the parameters are not all there yet; the
  // forward pass waits for each layer's segments until segment_ready has told of them.
  void train(std::uint64_t step, const Layout& layout, kernels::ConstFloats parameters, bool early);
  void segment_ready(std::size_t segment);
  // This member's share of the test images with the averaged parameters and running statistics of the committed state.
  void evaluate(std::uint64_t step);
  kernels::ConstFloats gradients() const;  // once prepared

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tg::daemon
