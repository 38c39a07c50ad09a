// What learns for the members of a simulated view: engines for their shares of a batch, and their samples. Members with
// equal shares and threads have one engine, since they learn one after the other; where gradients are replayed each has
// its own. Prepares what lasts for the run as a node does (run/preparation.h). One thread; the engines and the samples
// have threads of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "daemon/run/preparation_options.h"
#include "daemon/simulate/simulated_view.h"
#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"
#include "engine/dataset.h"
#include "engine/engine.h"
#include "kernels/base/status.h"
#include "kernels/tensor_kernels.h"
#include "schema/options/job.h"
#include "schema/place.h"
#include "schema/step.h"

namespace tg::daemon {

class ShareEngines final : public SimulatedLearning {
 public:
  // Takes what was prepared for a member, with these options; its gradient may be gone. compute outlives it.
  ShareEngines(const PreparationOptions& options, TrainingKit kit, const engine::ComputeDevice& compute);

  // For the members of a view, from that step on: threads, by rank, of their engines. What is needed no more goes
  // first. job: what the view's steps are made by. An error names the share.
  Status fit(const schema::JobSpec& job, const Per<Rank, std::uint16_t>& weights, std::uint64_t global_batch,
             const Per<Rank, std::uint64_t>& threads, Step first);
  const engine::Engine& engine_of(Rank member) const { return *parts_[member].kit->engine; }

  void train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats parameters,
             kernels::Floats gradient, const Ready& ready) override;
  engine::EvaluationCounts evaluate(Rank member, const Replica& replica) override;

 private:
  // Whose engine fits: samples of a step, threads, and the rank where gradients are replayed.
  using Key = std::tuple<int, std::uint64_t, std::size_t>;
  struct Part {
    ViewPart share;
    TrainingKit* kit = nullptr;  // with its engine; the rest is the first such member's
    std::unique_ptr<engine::BatchSource> batches;
  };
  void add_weight_decay(kernels::ConstFloats parameters, kernels::Floats gradient, std::size_t first,
                        std::size_t last) const;

  PreparationOptions options_;
  const std::shared_ptr<const Prepared> prepared_;
  const std::shared_ptr<const PreparedView> view_;
  const engine::ComputeDevice& compute_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  std::vector<std::pair<Key, std::unique_ptr<TrainingKit>>> engines_;
  Per<Rank, Part> parts_;
  AlignedArray<float> measured_;  // by batch normalizations
  engine::Batch evaluation_batch_;
  const engine::Batch no_batch_;
};

}  // namespace tg::daemon
