#include "tests/simulation/exchange_node.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "daemon/exchange/compare_digests.h"
#include "kernels/base/check.h"
#include "tests/simulation/tiny_training.h"

namespace tg::simulation {
namespace {

constexpr std::size_t kFaultySegment = 2;
constexpr std::size_t kFlippedElements = 32;  // the lowest bit of a single one may be rounded away by the next update

const kernels::Kernels& kernels_of(Rank rank) {
  const auto& all = kernels::available();
  return *all[rank % all.size()];
}

// The same chunk without its last payload byte: well formed on the wire, wrong for the kernels.
schema::SharedFrame shortened(const schema::SharedFrame& frame, schema::FramePool& pool) {
  schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
  auto& chunk = std::get<schema::Chunk>(decoded.body);
  chunk.payload = chunk.payload.first(chunk.payload.size() - 1);
  return schema::encode_frame(decoded.header, decoded.body, pool);
}

}  // namespace

ExchangeNode::ExchangeNode(Network& network, NodeOptions options, Faults faults)
    : VirtualNode(network, std::move(options)), kernels_(kernels_of(rank())), faults_(faults) {}

std::uint64_t ExchangeNode::digest() const { return daemon::Replica::combine(replica_->segment_digests(kernels_)); }

schema::Vote ExchangeNode::prepare_run(const daemon::RunIdentity& run) {
  job_ = schema::parse_job(run.spec, "job").value();
  const engine::SegmentTable& segments = tiny_segments();
  const engine::OptimizerOptions optimizer = optimizer_of(job_);
  worker_.reset();
  replica_ = std::make_unique<daemon::Replica>(segments, engine::slot_count(optimizer.kind), job_.seed);
  gradient_ = AlignedArray<float>(segments.padded_count());
  exchange_ = std::make_unique<daemon::Exchange>(
      daemon::Exchange::Options{options_.names, rank(), run.key, daemon::Membership::kView, tiny_segment_names()});
  failed_ = reporting_ = stopped_ = false;
  reports_.assign(options_.names.size(), std::nullopt);
  schema::Vote vote = options_.vote;
  vote.spec_hash = schema::job_hash(job_);
  vote.model_hash = segments.hash();
  vote.state_hash = digest();
  return vote;
}

void ExchangeNode::run_begins(schema::ExchangeKind exchange) {
  const auto plan = [&](bool ternary) {
    return daemon::make_plan(tiny_segments(), {options_.names.size(), exchange, ternary, job_.last_layer == "ternary",
                                               job_.min_ternary_size, job_.bucket_parameters, job_.chunk_parameters});
  };
  plan_ = plan(job_.gradients == "ternary");
  float_plan_ = plan(false);
  daemon::Worker::Options options;
  options.self = rank();
  options.members = options_.names.size();
  options.run_key = running_->key;
  options.seed = job_.seed;
  options.clip_sigma = job_.clip_sigma;
  worker_ = std::make_unique<daemon::Worker>(
      options, kernels_, tiny_segments(), *replica_, pool_,
      [this](const std::vector<Rank>& to, const schema::SharedFrame& frame) {
        send_bytes(to, faults_.bad_payload == exchange_->step() ? shortened(frame, pool_) : frame);
      });
  begin_step();
}

void ExchangeNode::run_ends() { exchange_.reset(); }

void ExchangeNode::run_asked_to_stop() { exchange_->add_flags(schema::kStopAfterStep); }

void ExchangeNode::send_bytes(const std::vector<Rank>& to, const schema::SharedFrame& frame) {
  send(to, std::make_shared<const Message>(Message{{}, {}, frame}));
}

// --- steps ---

void ExchangeNode::begin_step() {
  const std::uint64_t step = replica_->committed_steps();
  step_ = step;
  phase_ = schema::Phase::kBackward;
  if (faults_.flip_bit == step)
    for (std::size_t i = 0; i < kFlippedElements; ++i) replica_->flip_bit(tiny_segments()[kFaultySegment].offset + i);
  draw_gradient(job_.seed, rank(), step, gradient_.span());
  if (faults_.not_a_number == step)
    gradient_[tiny_segments()[kFaultySegment].offset + 7] = std::numeric_limits<float>::quiet_NaN();
  if (faults_.infinite == step) gradient_[3] = std::numeric_limits<float>::infinity();
  const engine::OptimizerOptions optimizer = optimizer_of(job_);
  const float rate = engine::learning_rate(optimizer.schedule, step) * (faults_.other_rate == step ? 2.0f : 1.0f);
  daemon::LocalStep local{step, std::bit_cast<std::uint32_t>(rate), 0, {}};
  if (job_.digest_every > 0 && step % job_.digest_every == 0) local.digests = replica_->segment_digests(kernels_);
  const daemon::Plan& plan = step < job_.float_steps ? float_plan_ : plan_;
  worker_->begin_step(plan, step, gradient_.span(), engine::update_for_step(optimizer, step));
  exchange_->begin_step(plan, std::move(local));
  std::uint64_t delay_us = 0;
  for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
    delay_us += network_.random().between(10, 4'000) + faults_.extra_compute_us;
    network_.after(rank(), delay_us, [this, key = running_->key, step, bucket] { ready(key, step, bucket); });
  }
  drain();
}

void ExchangeNode::ready(std::uint64_t key, std::uint64_t step, std::size_t bucket) {
  if (running_key() != key || failed_) return;
  ++progress_;
  exchange_->bucket_ready(bucket, worker_->measure(bucket), draw_loss(job_.seed, rank(), step));
  drain();
  carry_out();
}

void ExchangeNode::run_frame(Rank from, const SharedMessage& message) {
  schema::Frame frame = schema::decode_frame(message->bytes->bytes()).value();
  if (!exchange_ || failed_ || membership_.current() == nullptr || frame.header.run != membership_.current()->key)
    return;
  if (const auto* report = std::get_if<schema::Report>(&frame.body)) return take_report(from, *report);
  if (exchange_->in_step() && frame.header.step == exchange_->step() + 1) ++early_frames_;
  exchange_->frame(from, frame.header, frame.body, message);
  drain();
}

void ExchangeNode::drain() {
  for (auto actions = exchange_->take_actions(); !actions.empty() && !failed_; actions = exchange_->take_actions()) {
    for (const daemon::ExchangeAction& action : actions) {
      if (failed_) return;
      if (const auto* frame = std::get_if<daemon::SendFrame>(&action)) {
        send_bytes(frame->to, schema::encode_frame(frame->header, frame->body, pool_));
      } else if (const auto* step = std::get_if<daemon::CommitStep>(&action)) {
        commit(*step);
      } else if (const auto* failure = std::get_if<daemon::FailRun>(&action)) {
        failed_ = true;
        membership_.failed(failure->cause, network_.now_ms());
      } else if (!worker_->carry_out(action, *exchange_)) {
        const auto* sums = std::get_if<daemon::Accumulate>(&action);
        const auto* total = std::get_if<daemon::Apply>(&action);
        TG_CHECK(sums != nullptr || total != nullptr);
        exchange_->bad_payload(sums ? sums->chunk : total->chunk, sums ? sums->rank : total->rank);
      }
    }
  }
  if (!failed_ && !reporting_ && exchange_->waiting().ranks.size() > 0) phase_ = exchange_->waiting().phase;
}

void ExchangeNode::commit(const daemon::CommitStep& commit) {
  const std::uint64_t committed = commit.step + 1;
  replica_->commit(kernels_, engine::average_rate(job_.ema, committed));
  TG_CHECK(replica_->committed_steps() == committed, committed);
  ++progress_;
  last_loss_ = commit.loss_sum;
  const bool stop = (commit.flags & schema::kStopAfterStep) != 0 && committed < job_.steps;
  if (stop) membership_.stopping();
  if (stop || committed == job_.steps) return report(stop);
  begin_step();
}

// --- the end: all tell their digests and wait for all ---

void ExchangeNode::report(bool stopped) {
  reporting_ = true;
  stopped_ = stopped;
  phase_ = schema::Phase::kIdle;
  schema::Report one;
  one.last = true;
  one.digests = replica_->segment_digests(kernels_);
  const schema::FrameHeader header{running_->key, daemon::Membership::kView,
                                   static_cast<std::uint32_t>(replica_->committed_steps())};
  send_bytes(others(), schema::encode_frame(header, one, pool_));
  take_report(rank(), one);
}

void ExchangeNode::take_report(Rank from, const schema::Report& report) {
  reports_[from] = report;
  if (from != rank()) membership_.peer_finished(from);
  if (!reporting_ || !std::all_of(reports_.begin(), reports_.end(), [](const auto& one) { return one.has_value(); }))
    return;
  std::vector<std::vector<std::uint64_t>> digests;
  for (const auto& one : reports_) digests.push_back(one->digests);
  failed_ = true;  // nothing more of this run is looked at
  if (const auto cause = daemon::compare_digests(options_.names, tiny_segment_names(), digests, "at the end"))
    membership_.failed(*cause, network_.now_ms());
  else
    membership_.finished(stopped_ ? schema::RunState::kStopped : schema::RunState::kCompleted, "", network_.now_ms());
}

}  // namespace tg::simulation
