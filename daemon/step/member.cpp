#include "daemon/step/member.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "daemon/exchange/compare_digests.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

ClipRule clip_rule(const schema::JobSpec& job) { return {job.clip_sigma, job.scaler == "repo"}; }

Worker::Options worker_options(const Member::Options& options) {
  const schema::JobSpec& job = options.job;
  Worker::Options worker;
  worker.self = options.self;
  worker.members = options.names.size();
  worker.run_key = options.run_key;
  worker.seed = job.seed;
  worker.clip = clip_rule(job);
  worker.outside_weight_decay = job.weight_decay_path == "outside" ? static_cast<float>(job.weight_decay) : 0.0f;
  return worker;
}

}  // namespace

Member::Member(Options options, Hooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      optimizer_(optimizer_of(options_.job)),
      exchange_(Exchange::Options{options_.names, options_.self, options_.run_key, Membership::kView,
                                  options_.segment_names}) {}

void Member::begin(const schema::Commit& choice, kernels::Home& home, const kernels::CodecKernels& codec,
                   const engine::SegmentTable& segments, Replica& replica, kernels::ConstFloats gradients,
                   schema::FramePool& pool) {
  TG_CHECK(!begun());
  home_ = &home;
  codec_ = &codec;
  segments_ = &segments;
  replica_ = &replica;
  gradients_ = gradients;
  pool_ = &pool;
  plans_ = plans_of(options_.job, segments, options_.names.size(), choice);
  statistics_ = std::make_unique<GradientStatistics>(segments, clip_rule(options_.job));
  worker_ = make_worker();
  begin_step();
}

std::unique_ptr<Worker> Member::make_worker() {
  return std::make_unique<Worker>(worker_options(options_), home_->make_kernels(), *codec_, *segments_, shared_,
                                  exchange_.scalers(), *replica_, *pool_);
}

// --- steps ---

void Member::begin_step() {
  const std::uint64_t step = replica_->committed_steps();
  hooks_.before_step(step);
  const schema::JobSpec& job = options_.job;
  const kernels::Update update = engine::update_for_step(optimizer_, step);
  learning_rate_ = engine::learning_rate(optimizer_.schedule, step);
  LocalStep local{step, std::bit_cast<std::uint32_t>(learning_rate_), 0, {}};
  if (job.digest_every > 0 && step % job.digest_every == 0) local.digests = digests();
  if (options_.has_test_data && job.evaluate_every > 0 && (step + 1) % job.evaluate_every == 0)
    local.flags |= schema::kEvaluateAfterStep;
  const Plan& plan = plan_of(step);
  buckets_ready_ = 0;
  open_chunks_.assign(segments_->size(), 0);
  for (const ChunkPlan& chunk : plan.chunks)
    for (const ChunkPart& part : chunk.parts) ++open_chunks_[part.segment];
  const bool computing = std::exchange(early_, false);
  TG_CHECK(under_way_ == 0, under_way_);
  shared_.begin_step(*segments_, plan, step, gradients_, update);
  statistics_->begin_step(plan);
  traffic_ = {};
  exchange_.begin_step(plan, std::move(local));
  if (!computing) hooks_.train(step, plan, replica_->parameters(), false);
  drain();
}

void Member::bucket_ready(std::uint64_t step, std::size_t bucket, double loss_sum) {
  if (failed_ || !exchange_.in_step() || step != exchange_.step()) return;
  statistics_->ready(bucket, loss_sum);
  ++buckets_ready_;
  start_early();
}

void Member::start_early() {
  if (early_ || failed_ || !exchange_.in_step() || buckets_ready_ < exchange_.plan()->buckets.size()) return;
  const std::uint64_t next = exchange_.step() + 1;
  const std::optional<std::uint32_t> flags = exchange_.flags();
  if (!flags || (*flags & (schema::kStopAfterStep | schema::kEvaluateAfterStep)) != 0) return;
  if (next >= options_.job.steps || stopping_ || !hooks_.may_start_early(next)) return;
  early_ = true;
  hooks_.train(next, plan_of(next), replica_->next_parameters(), true);
  for (std::size_t s = 0; s < open_chunks_.size(); ++s)
    if (open_chunks_[s] == 0) hooks_.segment_ready(s);
}

void Member::chunk_applied(std::size_t chunk) {
  // The commit of the step's last chunk waits among the actions: the plan is still that of the step.
  for (const ChunkPart& part : plan_of(replica_->committed_steps()).chunks[chunk].parts)
    if (--open_chunks_[part.segment] == 0 && early_) hooks_.segment_ready(part.segment);
}

void Member::frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
                   std::shared_ptr<const void> keep) {
  if (failed_ || finished_ || header.run != options_.run_key) return;
  ++pieces_;
  if (const auto* report = std::get_if<schema::Report>(&body))
    on_report(from, header.step, *report);
  else
    exchange_.frame(from, header, body, std::move(keep));
  drain();
  start_early();
}

// --- work ---

std::optional<Piece> Member::next_piece() {
  if (!begun() || failed_ || finished_) return std::nullopt;
  std::optional<Piece> piece;
  // A link that has enough to carry leaves time for what comes next.
  if (statistics_->has_next() && exchange_.link_is_busy() && !exchange_.has_totals()) piece = statistics_->next();
  if (!piece)
    if (std::optional<ExchangeWork> work = exchange_.next_work())
      piece = std::visit([](auto& one) { return Piece(std::move(one)); }, *work);
  if (!piece && statistics_->has_next()) piece = statistics_->next();
  if (!piece) return std::nullopt;
  ++under_way_;
  if (std::holds_alternative<Reduce>(*piece)) hooks_.reached(schema::Phase::kReduce, exchange_.step());
  if (std::holds_alternative<Apply>(*piece)) hooks_.reached(schema::Phase::kGather, exchange_.step());
  return piece;
}

bool Member::work() {
  const std::optional<Piece> piece = next_piece();
  if (piece) carry_out(*piece);
  return piece.has_value();
}

std::uint64_t Member::carry_out(const Piece& piece) {
  PieceResult result = worker_->carry_out(piece, [this](const MadeFrame& total) { made(total); });
  const std::uint64_t sent = result.sent_bytes;
  done(piece, std::move(result));
  return sent;
}

void Member::made(const MadeFrame& total) {
  if (failed_) return;
  hooks_.send(total.to, total.frame);
  exchange_.total_sent(total.chunk, total.to, total.payload_bytes);
}

void Member::done(const Piece& piece, PieceResult result) {
  --under_way_;
  ++pieces_;
  if (failed_) return;
  traffic_.add(result.traffic);
  std::visit([&](const auto& one) { done(one, result); }, piece);
  drain();
  start_early();
}

void Member::done(const Measure& work, const PieceResult& result) {
  statistics_->measured(work, result.statistics);
  while (auto bucket = statistics_->take(shared_.clips))
    exchange_.bucket_ready(bucket->bucket, std::move(bucket->local), bucket->loss_sum);
}

void Member::done(const Contribute& work, const PieceResult& result) {
  hooks_.send(work.to, result.contribution.frame);
  exchange_.contributed(work.chunk, work.to, result.contribution.payload_bytes);
}

void Member::applied(std::size_t chunk, const std::optional<Rank>& broken) {
  if (broken) return exchange_.bad_payload(chunk, *broken);
  exchange_.applied(chunk);
  if (!exchange_.broken()) chunk_applied(chunk);
}

std::size_t Member::bucket_of(const Piece& piece) const {
  if (const auto* measure = std::get_if<Measure>(&piece)) return measure->bucket;
  const std::size_t chunk = std::holds_alternative<Contribute>(piece) ? std::get<Contribute>(piece).chunk
                            : std::holds_alternative<Reduce>(piece)   ? std::get<Reduce>(piece).chunk
                                                                      : std::get<Apply>(piece).chunk;
  return shared_.plan->chunks[chunk].bucket;
}

// --- actions ---

void Member::drain() {
  for (std::vector<ExchangeAction> actions = exchange_.take_actions(); !actions.empty() && !failed_;
       actions = exchange_.take_actions())
    for (const ExchangeAction& action : actions) {
      if (failed_) return;
      std::visit([this](const auto& one) { act(one); }, action);
    }
}

void Member::act(const SendFrame& action) {
  hooks_.send(action.to, schema::encode_frame(action.header, action.body, *pool_));
  hooks_.reached(schema::Phase::kScalerWait, action.header.step);
}

void Member::act(const CommitStep& action) {
  const std::uint64_t step = action.step + 1;  // committed steps from now on
  replica_->commit(engine::average_rate(options_.job.ema, step));
  ++pieces_;
  const bool last = step == options_.job.steps;
  const bool stopped = !last && (action.flags & schema::kStopAfterStep) != 0;
  const bool evaluate =
      !stopped && options_.has_test_data && (last || (action.flags & schema::kEvaluateAfterStep) != 0);
  if ((action.flags & schema::kStopAfterStep) != 0) stopping_ = true;
  reports_.erase(reports_.begin(), reports_.lower_bound(step));
  const bool ends = last || stopped || evaluate;
  TG_CHECK(!(ends && early_), step);
  hooks_.committed({step, action.loss_sum, learning_rate_, traffic_, ends});
  if (ends)
    start_report(last || stopped, stopped, evaluate);
  else
    begin_step();
}

// --- evaluations and the end ---

void Member::start_report(bool last, bool stopped, bool evaluate) {
  pending_ = Pending{replica_->committed_steps(), last, stopped};
  if (evaluate)
    hooks_.evaluate(pending_->step);
  else
    send_report({});
}

void Member::evaluated(std::uint64_t step, const engine::EvaluationCounts& counts) {
  if (!pending_ || step != pending_->step || failed_) return;
  send_report(counts);
  drain();
}

std::vector<std::uint64_t> Member::digests() {
  std::vector<std::uint64_t> digests = replica_->segment_digests();
  hooks_.state_digests(digests);
  return digests;
}

void Member::send_report(const engine::EvaluationCounts& counts) {
  const schema::Report report{pending_->last, counts.correct, counts.total, counts.loss_sum, digests()};
  std::vector<Rank> others;
  for (Rank r = 0; r < options_.names.size(); ++r)
    if (r != options_.self) others.push_back(r);
  const schema::FrameHeader header{options_.run_key, Membership::kView, static_cast<std::uint32_t>(pending_->step)};
  if (!others.empty()) hooks_.send(others, schema::encode_frame(header, report, *pool_));
  on_report(options_.self, pending_->step, report);
}

void Member::on_report(Rank from, std::uint64_t step, const schema::Report& report) {
  const std::uint64_t committed = replica_ != nullptr ? replica_->committed_steps() : 0;
  if (step != committed && step != committed + 1)
    return fail(from, "evaluate",
                options_.names[from] + " reports on step " + std::to_string(step) + " while " +
                    options_.names[options_.self] + " has committed " + std::to_string(committed));
  auto& slots = reports_[step];
  slots.resize(options_.names.size());
  slots[from] = report;
  if (pending_) finish_reports();
}

void Member::finish_reports() {
  const auto found = reports_.find(pending_->step);
  if (found == reports_.end()) return;
  const auto& slots = found->second;
  if (!std::all_of(slots.begin(), slots.end(), [](const auto& slot) { return slot.has_value(); })) return;
  std::vector<std::vector<std::uint64_t>> all_digests;
  Evaluation evaluation{pending_->step, {}};
  for (const auto& slot : slots) {
    all_digests.push_back(slot->digests);
    evaluation.counts.correct += slot->correct;
    evaluation.counts.total += slot->total;
    evaluation.counts.loss_sum += slot->loss_sum;
  }
  const Pending pending = *std::exchange(pending_, std::nullopt);
  reports_.erase(found);
  if (auto difference = compare_digests(options_.names, options_.segment_names, all_digests,
                                        "after step " + std::to_string(pending.step)))
    return fail(std::move(*difference));
  hooks_.reported(evaluation.counts.total > 0 ? std::optional(evaluation) : std::nullopt);
  if (!pending.last) return begin_step();
  finished_ = pending.stopped ? schema::RunState::kStopped : schema::RunState::kCompleted;
}

void Member::request_stop() {
  exchange_.add_flags(schema::kStopAfterStep);
  stopping_ = true;
}

void Member::fail(schema::Fail cause) {
  if (!failed_) failed_ = std::move(cause);
}

void Member::fail(Rank about, const std::string& phase, const std::string& message) {
  fail(schema::Fail{ErrorKind::kRunFailed, options_.names[about], phase, message});
}

Exchange::Waiting Member::waiting() const {
  if (!begun() || failed_ || finished_ || under_way_ > 0) return {};
  if (!pending_) return exchange_.waiting();
  Exchange::Waiting waiting;
  const auto found = reports_.find(pending_->step);
  if (found == reports_.end() || !found->second[options_.self].has_value()) return waiting;  // our own is not done
  waiting.phase = schema::Phase::kIdle;
  for (Rank r = 0; r < options_.names.size(); ++r)
    if (!found->second[r].has_value()) waiting.ranks.push_back(r);
  return waiting;
}

}  // namespace tg::daemon
