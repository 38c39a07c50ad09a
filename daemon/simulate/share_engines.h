// What learns for the members of a simulated view: engines for their shares of a batch, and their samples. Members with
// equal shares and threads share engines, one for each lane, since in a lane they learn one after the other; where
// gradients are replayed each has its own. Prepares what lasts for the run as a node does (run/prepare.h). Used by
// one thread, but for train() and evaluate(), which the lanes call; the engines and the samples have threads of their
// own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/run/preparation_options.h"
#include "daemon/simulate/lanes.h"
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
  // Takes what was prepared for a member, with these options; its gradient may be gone. compute outlives it. lanes:
  // that learn side by side, each with an engine of its own.
  ShareEngines(const PreparationOptions& options, TrainingKit kit, const engine::ComputeDevice& compute,
               std::size_t lanes = 1);

  // For the members of a view, from that step on: threads, by rank, of their engines. What is needed no more goes
  // first. job: what the view's steps are made by. An error names the share.
  Status fit(const schema::JobSpec& job, const Per<Rank, std::uint16_t>& weights, std::uint64_t global_batch,
             std::uint64_t first_weights, const Per<Rank, std::uint64_t>& threads, Step first);
  const engine::Engine& engine_of(Rank member) const { return *parts_[member].engines->all.front()->kit.engine; }

  void train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats parameters,
             kernels::Floats gradient, const Ready& ready) override;
  engine::EvaluationCounts evaluate(Rank member, const Replica& replica) override;
  void give(Rank member, const Work& work) override { lanes_.give(member, work); }
  std::vector<Rank> take_done(bool waits) override { return lanes_.take_done(waits); }

 private:
  // Whose engine fits: samples of a step, threads, the rank where gradients are replayed, and samples at once.
  using Key = std::tuple<int, std::uint64_t, std::size_t, std::uint64_t>;
  // What a lane learns with.
  struct Learner {
    TrainingKit kit;                    // with its engine and tensor kernels; the rest is the first such member's
    AlignedArray<float> measured = {};  // by batch normalizations
    engine::Batch evaluation_batch = {};
  };
  struct Engines {
    std::vector<std::unique_ptr<Learner>> all;
    std::vector<Learner*> idle;  // guarded by the mutex
  };
  struct Part {
    LocalShare share;
    Engines* engines = nullptr;
    std::unique_ptr<engine::BatchSource> batches;
  };
  // A lane's, while it has work: one is idle, for there are as many as lanes, or as members.
  class Lease {
   public:
    Lease(ShareEngines& of, Rank member);
    ~Lease();
    Learner& operator*() const { return *learner_; }

   private:
    ShareEngines& of_;
    Engines& engines_;
    Learner* learner_;
  };
  Status make_learner(const Key& key, const LocalShare& share, Step first);
  void add(const Key& key, TrainingKit kit);

  PreparationOptions options_;
  const std::shared_ptr<const Prepared> prepared_;
  const std::shared_ptr<const PreparedView> view_;
  const engine::ComputeDevice& compute_;
  std::map<Key, Engines> engines_;
  Per<Rank, Part> parts_;
  std::mutex mutex_;
  const engine::Batch no_batch_;
  const std::size_t lane_count_;
  Lanes lanes_;  // goes first
};

}  // namespace tg::daemon
