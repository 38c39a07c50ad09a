// The compute thread of a run: makes what it trains with (Prepare), then executes orders, one at a time: forward,
// backward, evaluations. It reports through the hooks (called on the compute thread; they must not block). It lasts for
// the run; a new view with another share of the batch is an order too (rebuild).
//
// The gradient array belongs to the trainer; between train() and the step's commit its buckets are read by the
// exchange's threads as they are reported.
//
// An order can be abandoned: the thread drops it after the layer or sample in progress and takes the next one, which
// may be there already; it reports nothing more for it. What it has read and written until then is void: the state of a
// step is not written before this member has announced its gradient of that step, which comes from the next order. An
// earlier report is recognised by its view.
//
// An engine that fails in an order is given up: no report follows until a rebuild has made another one.
//
// On destruction the thread ends after the layer or sample in progress. A longer call cannot be interrupted: after
// kPatience the thread is left behind (orphaned_threads.h) with everything it may touch: it holds its own references,
// and never calls a hook again. The memory space of its arrays and the progress must outlive even that.
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
#include "engine/data/data_summary.h"
#include "engine/dataset.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "kernels/memory_array.h"
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
  std::uint64_t initial_digest = 0;  // the digest that the run, or its resume, begins with
  std::uint64_t threads = 0;
  std::uint64_t steps = 0;                 // until the run is complete
  std::vector<std::string> initial_notes;  // for the log, where the parameters were not drawn
  engine::DataSummary read;                // nothing of a replay
  std::string description;                 // for the artefacts (run/description.h); empty when gradients are replayed
};

// A member's part in a view.
struct LocalShare {
  Rank self;
  Per<Rank, std::uint16_t> weights;  // all members' shares of a batch
  std::uint64_t global_batch = 0;    // the run's
  // The sum of the weights in the run's first view: a share that grows later is computed in parts of the size that it
  // had there, so it needs no more memory. 0 = this is the first view.
  std::uint64_t first_weights = 0;
  engine::Share share() const { return engine::split(global_batch, weights)[self.index()]; }
  // By which each member weighs its sum before anything is measured: the mean of the N gradients is the batch's.
  double factor() const { return static_cast<double>(weights.size()) / static_cast<double>(global_batch); }
  // Samples that the engine computes at once; 0 = the whole share. asked: the job's micro-batch.
  std::uint64_t at_once(std::uint64_t asked) const {
    if (first_weights == 0) return asked;
    const std::uint64_t most = (global_batch * weights[self] + first_weights - 1) / first_weights;
    if (static_cast<std::uint64_t>(share().count) <= most) return asked;
    return asked == 0 ? most : std::min(asked, most);
  }
};

// What is prepared for a view: an engine for this member's share of a batch.
struct PreparedView {
  std::shared_ptr<const Prepared> run;
  std::uint32_t local_batch = 0;       // samples of a step that are this member's
  std::uint64_t activation_bytes = 0;  // the engine's, and its batches of samples
  std::uint64_t device_bytes = 0;      // the part of it, of state and of gradient that lies on a device
  std::uint64_t device_reserve = 0;    // and beside that: what is kept free there (run/memory_check.h)
  double step_seconds = 0;             // their forward + backward: measured, or as those of an earlier view were
  std::string engine_build, engine_choices;
};

// Samples of an evaluation batch, at most: it is progress when one is done, and larger samples take longer.
inline int evaluation_samples(const engine::ImageShape& input) {
  constexpr std::size_t kMost = 250, kMaxBytes = 32u << 20;
  return static_cast<int>(
      std::clamp<std::size_t>(kMaxBytes / (std::max<std::size_t>(input.elements(), 1) * sizeof(float)), 1, kMost));
}

// What a compute thread trains with, all in one memory space.
struct TrainingKit {
  LocalShare part;
  std::shared_ptr<const Prepared> prepared;
  std::shared_ptr<const PreparedView> view;
  std::unique_ptr<kernels::TensorKernels> tensors;  // the compute thread's
  kernels::MemoryArray gradients;
  std::unique_ptr<engine::BatchSource> batches;  // empty when gradients are replayed: no data then
  std::unique_ptr<engine::Engine> engine;        // goes first: it may be copying a batch
};

// Weight decay inside the ternary path, of these segments, added whole to a member's gradient.
void add_weight_decay(const schema::JobSpec& job, const TrainingKit& kit, kernels::ConstFloats parameters,
                      kernels::Floats gradient, std::size_t first, std::size_t last);

class Trainer {
 public:
  // Called first, on the compute thread; calls advance() whenever something got done, and lets pass what that throws:
  // the trainer is gone.
  using Prepare = std::function<Result<TrainingKit>(const std::function<void()>& advance)>;
  // Called on the compute thread with every rebuild, as Prepare: makes of the kit what another part needs from that
  // step on. After an error it may have no engine.
  using Rebuild =
      std::function<Status(TrainingKit& kit, const LocalShare& part, Step first, const std::function<void()>& advance)>;
  struct Makers {
    Prepare prepare;
    Rebuild rebuild;
  };
  struct Hooks {
    std::function<void(Result<std::shared_ptr<const PreparedView>>)> on_prepared;
    std::function<void(std::uint32_t view, Result<std::shared_ptr<const PreparedView>>)> on_rebuilt;
    std::function<void(StepEvent&&)> on_event;  // GradientReady, Evaluated, EngineFailed
  };
  struct Options {
    schema::JobSpec job;
    std::string run = {};  // its id, for people
  };
  // Starts the thread, which prepares at once.
  Trainer(Options options, Makers makers, Progress& progress, const FaultInjection& fault,
          std::shared_ptr<Timeline> timeline, Hooks hooks);
  ~Trainer();

  // Forward and backward of a step, any step of the samples; one order at a time, the next one from the last
  // GradientReady on, or after abandon(). Weight decay inside the ternary path is added here, whole, by each member.
  // early: the parameters are not all there yet; the forward pass waits for each layer's segments until segment_ready
  // has told of them.
  void train(const Origin& of, const Layout& layout, kernels::ConstFloats parameters, bool early);
  void segment_ready(std::size_t segment);
  // This member's share of the test images with the averaged parameters and running statistics of the committed state.
  void evaluate(const Origin& of);
  // Another part, from this step on: of the view of this number, which hooks.on_rebuilt tells. An order as well, the
  // first one of its view.
  void rebuild(std::uint32_t view, const LocalShare& part, Step first);
  void abandon();                          // the order in progress, or the one that waits; nothing, if there is none
  kernels::ConstFloats gradients() const;  // once prepared

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tg::daemon
