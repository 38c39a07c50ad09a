#include "daemon/simulate/share_engines.h"

#include <algorithm>
#include <utility>

#include "daemon/run/rebuild.h"
#include "kernels/base/check.h"

namespace tg::daemon {

ShareEngines::ShareEngines(const PreparationOptions& options, TrainingKit kit, const engine::ComputeDevice& compute,
                           std::size_t lanes)
    : options_(options),
      prepared_(kit.prepared),
      view_(kit.view),
      compute_(compute),
      lane_count_(lanes),
      lanes_(lanes) {
  const Key key{kit.part.share().count, options.threads, kit.part.self.index(),
                kit.part.at_once(options.job.micro_batch)};
  kit.batches.reset();  // each member has its own
  add(key, std::move(kit));
}

void ShareEngines::add(const Key& key, TrainingKit kit) {
  if (!kit.tensors) kit.tensors = compute_.space().make_kernels();
  Engines& engines = engines_[key];
  engines.all.push_back(std::make_unique<Learner>(
      Learner{std::move(kit), AlignedArray<float>(prepared_->model.statistics.padded_count())}));
  engines.idle.push_back(engines.all.back().get());
}

Status ShareEngines::make_learner(const Key& key, const LocalShare& share, Step first) {
  TrainingKit kit;
  kit.part = share;
  kit.prepared = prepared_;
  kit.view = view_;
  options_.threads = std::get<1>(key);
  if (Status made = rebuild(options_, kit, share, first, compute_, [] {}); !made.ok()) return made;
  kit.batches.reset();
  add(key, std::move(kit));
  return {};
}

Status ShareEngines::fit(const schema::JobSpec& job, const Per<Rank, std::uint16_t>& weights,
                         std::uint64_t global_batch, std::uint64_t first_weights,
                         const Per<Rank, std::uint64_t>& threads, Step first) {
  options_.job = job;
  parts_.clear();
  Per<Rank, Key> keys;
  for (const Rank rank : weights.places()) {
    LocalShare share{rank, weights, global_batch, first_weights};
    keys.push_back(
        {share.share().count, threads[rank], replays(job) ? rank.index() : 0, share.at_once(job.micro_batch)});
    parts_.push_back({std::move(share), nullptr, nullptr});
  }
  // The gradients of a replay are copied once into a member's array: the next view has other members.
  std::erase_if(engines_, [&](const auto& one) { return replays(job) || std::ranges::count(keys, one.first) == 0; });
  for (const Rank rank : parts_.places()) {
    Part& part = parts_[rank];
    const Key& key = keys[rank];
    const auto alike = static_cast<std::size_t>(std::ranges::count(keys, key));
    while (engines_[key].all.size() < std::min(lane_count_, alike))
      if (Status made = make_learner(key, part.share, first); !made.ok()) return made;
    part.engines = &engines_[key];
    part.batches = batches_of(options_, part.share, *prepared_, first, job.steps, compute_.space());
  }
  return {};
}

ShareEngines::Lease::Lease(ShareEngines& of, Rank member) : of_(of), engines_(*of.parts_[member].engines) {
  const std::lock_guard lock(of_.mutex_);
  TG_CHECK(!engines_.idle.empty(), member.index());
  learner_ = engines_.idle.back();
  engines_.idle.pop_back();
}

ShareEngines::Lease::~Lease() {
  const std::lock_guard lock(of_.mutex_);
  engines_.idle.push_back(learner_);
}

// As a node's compute thread does (step/threads/trainer.cpp), without its orders.
void ShareEngines::train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats parameters,
                         kernels::Floats gradient, const Ready& ready) {
  Part& part = parts_[member];
  const Lease lease(*this, member);
  Learner& learner = *lease;
  engine::Engine& engine = *learner.kit.engine;
  TG_CHECK(!part.batches || part.batches->next_step() == of.step.value(), of.step.value());
  const engine::Batch& batch = part.batches ? part.batches->next() : no_batch_;
  GradientReady told{of};
  told.loss_sum = engine.forward(parameters.address(), batch);
  if (learner.measured.size() > 0) {
    engine.read_statistics(learner.measured.data());
    told.statistics = engine::without_padding(prepared_->model.statistics, learner.measured.span());
  }
  engine.backward(static_cast<float>(part.share.factor()), gradient.address(),
                  [&](std::size_t first, std::size_t last) {
                    add_weight_decay(options_.job, learner.kit, parameters, gradient, first, last);
                    for (; told.bucket < layout.buckets.size() && layout.buckets[told.bucket].first_segment >= first;
                         ++told.bucket) {
                      ready(GradientReady(told));
                      told.statistics.clear();
                    }
                  });
}

engine::EvaluationCounts ShareEngines::evaluate(Rank member, const Replica& replica) {
  const Part& part = parts_[member];
  const engine::Share share = engine::split(prepared_->data->test.count(), part.share.weights)[part.share.self.index()];
  const Lease lease(*this, member);
  engine::Engine& engine = *(*lease).kit.engine;
  engine::Batch& batch = (*lease).evaluation_batch;
  engine::EvaluationCounts counts;
  for (int done = 0; done < share.count; done += batch.count) {
    const int wanted = std::min(evaluation_samples(prepared_->model.input), share.count - done);
    batch.count = wanted;
    engine::fill_evaluation_batch(*prepared_->data, prepared_->recipe,
                                  static_cast<std::size_t>(share.first) + static_cast<std::size_t>(done), batch,
                                  static_cast<int>(prepared_->threads));
    if (batch.count > 0) counts += engine.evaluate(replica.average().address(), replica.statistics().data(), batch);
    batch.count = wanted;  // damaged files are skipped
  }
  return counts;
}

}  // namespace tg::daemon
