#include "daemon/simulate/share_engines.h"

#include <algorithm>
#include <utility>

#include "daemon/run/fitting.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// Samples in memory are copied faster than any model takes them; others are decoded or drawn.
int data_threads(const Prepared& prepared) {
  return prepared.data->train.source == nullptr ? 1 : std::max(1, static_cast<int>(prepared.threads));
}

}  // namespace

ShareEngines::ShareEngines(const PreparationOptions& options, TrainingKit kit, const engine::ComputeDevice& compute)
    : options_(options),
      prepared_(kit.prepared),
      view_(kit.view),
      compute_(compute),
      tensors_(compute.home().make_kernels()),
      measured_(prepared_->model.statistics.padded_count()) {
  const Key key{kit.part.share().count, options.threads, kit.part.self.index()};
  kit.batches.reset();  // each member has its own
  engines_.emplace_back(key, std::make_unique<TrainingKit>(std::move(kit)));
}

Status ShareEngines::fit(const schema::JobSpec& job, const Per<Rank, std::uint16_t>& weights,
                         std::uint64_t global_batch, const Per<Rank, std::uint64_t>& threads, Step first) {
  options_.job = job;
  parts_.clear();
  Per<Rank, Key> keys;
  for (const Rank rank : weights.places()) {
    ViewPart share{rank, weights, global_batch};
    keys.push_back({share.share().count, threads[rank], replays(job) ? rank.index() : 0});
    parts_.push_back({std::move(share), nullptr, nullptr});
  }
  // The gradients of a replay are copied once into a member's array: the next view has other members.
  std::erase_if(engines_, [&](const auto& one) { return replays(job) || std::ranges::count(keys, one.first) == 0; });
  for (const Rank rank : parts_.places()) {
    Part& part = parts_[rank];
    auto found = std::ranges::find(engines_, keys[rank], [](const auto& one) { return one.first; });
    if (found == engines_.end()) {
      auto kit = std::make_unique<TrainingKit>();
      kit->part = part.share;
      kit->prepared = prepared_;
      kit->view = view_;
      options_.threads = threads[rank];
      if (Status made = refit(options_, *kit, part.share, first, compute_, [] {}); !made.ok()) return made;
      kit->batches.reset();
      engines_.emplace_back(keys[rank], std::move(kit));
      found = std::prev(engines_.end());
    }
    part.kit = found->second.get();
    if (replays(job)) continue;
    part.batches = std::make_unique<engine::BatchSource>(
        prepared_->data,
        engine::BatchSource::Options{job.seed, global_batch, part.share.share(), first.value(), job.steps,
                                     prepared_->recipe, data_threads(*prepared_), &compute_.home()});
  }
  return {};
}

// As a node's compute thread does (step/threads/trainer.cpp), without its orders.
void ShareEngines::train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats parameters,
                         kernels::Floats gradient, const Ready& ready) {
  Part& part = parts_[member];
  engine::Engine& engine = *part.kit->engine;
  TG_CHECK(!part.batches || part.batches->next_step() == of.step.value(), of.step.value());
  const engine::Batch& batch = part.batches ? part.batches->next() : no_batch_;
  GradientReady told{of};
  told.loss_sum = engine.forward(parameters.address(), batch);
  if (measured_.size() > 0) {
    engine.read_statistics(measured_.data());
    told.statistics = engine::without_padding(prepared_->model.statistics, measured_.span());
  }
  engine.backward(static_cast<float>(part.share.factor()), gradient.address(),
                  [&](std::size_t first, std::size_t last) {
                    add_weight_decay(parameters, gradient, first, last);
                    for (; told.bucket < layout.buckets.size() && layout.buckets[told.bucket].first_segment >= first;
                         ++told.bucket) {
                      ready(GradientReady(told));
                      told.statistics.clear();
                    }
                  });
}

void ShareEngines::add_weight_decay(kernels::ConstFloats parameters, kernels::Floats gradient, std::size_t first,
                                    std::size_t last) const {
  const auto decay = static_cast<float>(options_.job.weight_decay);
  if (decay == 0 || !schema::decays_inside(options_.job)) return;
  for (std::size_t s = first; s < last; ++s) {
    const engine::Segment& segment = prepared_->model.segments[s];
    if (!segment.decays) continue;
    const std::size_t begin = segment.offset, count = segment.padded_count();
    tensors_->add_scaled(parameters.subspan(begin, count), decay, gradient.subspan(begin, count));
  }
}

engine::EvaluationCounts ShareEngines::evaluate(Rank member, const Replica& replica) {
  const Part& part = parts_[member];
  const engine::Share share = engine::split(prepared_->data->test.count(), part.share.weights)[part.share.self.index()];
  engine::EvaluationCounts counts;
  for (int done = 0; done < share.count; done += evaluation_batch_.count) {
    const int wanted = std::min(evaluation_samples(prepared_->model.input), share.count - done);
    evaluation_batch_.count = wanted;
    engine::fill_evaluation_batch(*prepared_->data, prepared_->recipe,
                                  static_cast<std::size_t>(share.first) + static_cast<std::size_t>(done),
                                  evaluation_batch_, static_cast<int>(prepared_->threads));
    if (evaluation_batch_.count > 0)
      counts += part.kit->engine->evaluate(replica.average().address(), replica.statistics().data(), evaluation_batch_);
    evaluation_batch_.count = wanted;  // damaged files are skipped
  }
  return counts;
}

}  // namespace tg::daemon
