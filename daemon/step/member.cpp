#include "daemon/step/member.h"

#include <bit>
#include <utility>

#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// A round is one step (DESIGN.md, section 4b). As numbers: the step whose gradient a round exchanges, and the round
// that exchanges a step's; as counts: the steps in so many rounds, and the rounds of so many steps. Nothing else turns
// one into the other.
Step step_of(Round round) { return Step(round.value()); }
Round round_of(Step step) { return Round(step.value()); }

// After a step with one of these flags all report before they go on.
constexpr std::uint32_t kWithReport = schema::kStopAfterStep | schema::kEvaluateAfterStep | schema::kQuiesce;

// Elements of the average that are moved at a time: 0.2 ms, so that no event waits for longer.
constexpr std::size_t kAveragePart = 256u << 10;
static_assert(kAveragePart % kernels::kBlock == 0);

double accuracy_of(const Member::Evaluation& evaluation) {
  return static_cast<double>(evaluation.counts.correct) / static_cast<double>(evaluation.counts.total);
}

std::vector<std::string> names_of(const engine::Model& model) {
  std::vector<std::string> names;
  for (const engine::SegmentTable* table : {&model.segments, &model.statistics})
    for (const engine::Segment& segment : table->segments()) names.push_back(segment.name);
  return names;
}

// Each member's share of a batch, by rank.
Per<Rank, float> shares_in(const View& view, std::uint64_t batch) {
  Per<Rank, float> shares;
  for (const engine::Share& part : engine::split(batch, view.weights()))
    shares.push_back(static_cast<float>(static_cast<double>(part.count) / static_cast<double>(batch)));
  return shares;
}

}  // namespace

// --- the life of a step ---

// State k is committed. The compute thread makes the gradient of step k, unless it began early.
void Member::begin_step() {
  const Round round = resources_->replica.committed_rounds();
  const Step step = step_of(round);
  delegate_.step_begins(step);
  const schema::JobSpec& job = options_.job;
  learning_rate_ = engine::learning_rate(optimizer_.schedule, step.value());
  LocalRound local{round, std::bit_cast<std::uint32_t>(learning_rate_), 0, {}};
  const bool digests_due = job.digest_every > 0 && round.value() % job.digest_every == 0;
  const bool after_change = members_.view.number() > View::kFirst && round == options_.first_round;
  if (digests_due || after_change) local.digests = digests_ = resources_->replica.segment_digests();
  if (options_.has_test_data && job.evaluate_every > 0 && step.next().value() % job.evaluate_every == 0)
    local.flags |= schema::kEvaluateAfterStep;
  const Layout& layout = layout_of(step);
  open_chunks_.assign(segments_.size(), 0);
  for (const ChunkLayout& chunk : layout.chunks)
    for (const ChunkPart& part : chunk.parts) ++open_chunks_[part.segment];
  traffic_ = {};
  TG_CHECK(in_flight_ == 0, in_flight_);
  shared_.begin_round(segments_, layout, round, resources_->gradients,
                      engine::update_for_step(optimizer_, step.value()));
  exchange_.begin_round(layout, std::move(local));
  if (!std::exchange(early_, false)) delegate_.train(step, layout, resources_->replica.parameters(), false);
  apply_actions();
}

// Backward has a bucket: its statistics can be measured.
void Member::on_event(const GradientReady& event) {
  if (!counts(event.of)) return;
  if (event.backward_seconds > 0) delegate_.computed(event);
  if (failed_ || !exchange_.in_round() || event.of.step != step()) return;
  guarded([&] {
    exchange_.on_gradient_ready(event.bucket, event.loss_sum, event.statistics);
    start_early();
  });
}

// Scalers of the others open a bucket; their codes and totals become tasks.
bool Member::on_frame(Seat seat, const schema::FrameHeader& header, const schema::FrameBody& body,
                      std::shared_ptr<const void> keep) {
  const std::optional<Rank> from = members_.view.rank(seat);
  if (!from || header.view != members_.view.number()) return false;
  if (failed_ || finished_ || sealed_) return true;
  guarded([&] {
    if (const auto* of_state = std::get_if<schema::Report>(&body)) {
      if (auto wrong = reports_.on_report(*from, Round(header.step), *of_state, committed_rounds()))
        fail(*std::move(wrong));
      finish_reports();
    } else if (std::holds_alternative<schema::Reached>(body)) {
      if (auto wrong = barrier_.on_reached(*from, Round(header.step), committed_rounds())) fail(*std::move(wrong));
      finish_barrier();
    } else {
      exchange_.on_frame(*from, header, body, std::move(keep));
    }
    apply_actions();
    start_early();
  });
  return true;
}

// Measure, contribute, reduce, apply: whatever can be done now.
std::optional<Task> Member::next_task(ThreadRole role) {
  if (!begun() || failed_ || finished_ || sealed_) return std::nullopt;
  std::optional<Task> task = exchange_.next_task(role);
  guarded([this] { apply_actions(); });
  if (!task) return std::nullopt;
  ++in_flight_;
  if (std::holds_alternative<Reduce>(*task)) delegate_.reached(schema::Phase::kReduce, step());
  if (std::holds_alternative<Apply>(*task)) delegate_.reached(schema::Phase::kGather, step());
  return task;
}

void Member::on_event(const TaskDone& event) {
  if (!counts(event.of)) return;
  --in_flight_;
  if (failed_) return;
  traffic_.add(event.result.traffic);
  guarded([&] {
    std::visit([&](const auto& task) { task_done(task, event.result); }, event.task);
    apply_actions();
    start_early();
  });
}

void Member::task_done(const Measure& task, const TaskResult& result) {
  exchange_.on_measured(task, result.statistics);
}

void Member::task_done(const Contribute& task, const TaskResult& result) {
  send(task.to, result.contribution.frame);
  exchange_.on_contributed(task, result.contribution.payload_bytes);
}

void Member::on_event(const TotalMade& event) {
  if (failed_ || !counts(event.of)) return;
  const MadeFrame& total = event.total;
  send(total.to, total.frame);
  exchange_.on_total_sent(total.chunk, total.to, total.payload_bytes);
}

// The last chunk of a segment makes its next parameters final; the last one of all commits.
void Member::on_applied(std::size_t chunk, const std::optional<Rank>& broken) {
  if (broken) return exchange_.on_bad_payload(chunk, *broken);
  exchange_.on_applied(chunk);
  if (exchange_.has_failed()) return;
  for (const ChunkPart& part : layout_of(step_of(resources_->replica.committed_rounds())).chunks[chunk].parts)
    if (--open_chunks_[part.segment] == 0 && early_) delegate_.segment_ready(part.segment);
}

void Member::start_early() {
  if (early_ || failed_ || !exchange_.gradient_complete()) return;
  const Step next = step().next();
  const std::optional<std::uint32_t> flags = exchange_.flags();
  if (!flags || (*flags & kWithReport) != 0) return;
  if (next.value() >= options_.job.steps || stopping_ || !delegate_.may_start_early(next)) return;
  early_ = true;
  delegate_.train(next, layout_of(next), resources_->replica.next_parameters(), true);
  for (std::size_t s = 0; s < open_chunks_.size(); ++s)
    if (open_chunks_[s] == 0) delegate_.segment_ready(s);
}

// All members have committed the state that this step began with. A checkpoint of it is requested now, while no chunk
// of the step has been applied: the node that writes it can hold this step back, and finds the state as it is.
void Member::apply(const ConfirmState& action) {
  const bool compared = !digests_.empty();
  if (resources_->replica.confirmed_rounds() < action.round) {
    confirming_ = action;
    const bool average_follows = compared && resources_->replica.keeps_average();
    if ((action.flags & schema::kCheckpoint) != 0 || average_follows) confirm(SIZE_MAX);
    if (average_follows) digests_ = resources_->replica.segment_digests();  // that which it is saved with
  } else if (action.round > options_.first_round && (action.flags & schema::kCheckpoint) != 0) {
    delegate_.confirmed(step_of(action.round), true);  // it was confirmed before its report
  }
  if (compared) delegate_.digests_compared(step_of(action.round), std::exchange(digests_, {}));
}

// By so many elements of the average.
void Member::confirm(std::size_t most_elements) {
  if (!resources_->replica.confirm(engine::average_rate(options_.job.ema, confirming_->round.value()), most_elements))
    return;
  const ConfirmState done = *std::exchange(confirming_, std::nullopt);
  delegate_.confirmed(step_of(done.round), (done.flags & schema::kCheckpoint) != 0);
}

bool Member::use_idle_time() {
  if (!begun() || failed_ || sealed_ || !confirming_) return false;
  guarded([this] { confirm(resources_->space.host_accessible() ? kAveragePart : SIZE_MAX); });
  return true;
}

void Member::apply(const CommitRound& action) {
  if (confirming_) confirm(SIZE_MAX);
  const Round round = action.round.next();  // committed rounds from now on
  resources_->replica.commit(action.statistics);
  const bool last = round == round_of(Step(options_.job.steps));
  const bool stopped = !last && (action.flags & schema::kStopAfterStep) != 0;
  const bool evaluate =
      !stopped && options_.has_test_data && (last || (action.flags & schema::kEvaluateAfterStep) != 0);
  if ((action.flags & schema::kStopAfterStep) != 0) stopping_ = true;
  const bool holds = !last && !stopped && (action.flags & schema::kQuiesce) != 0;
  const bool ends = last || stopped || evaluate || holds;
  TG_CHECK(!(ends && early_), round.value());
  barrier_.forget_before(round);
  reports_.forget_before(round);
  delegate_.committed({step_of(round).value(), action.loss_sum, learning_rate_, traffic_, ends});
  if (!ends) return begin_step();
  pending_ =
      Pending{.round = round, .last = last || stopped, .stopped = stopped, .evaluates = evaluate, .holds = holds};
  if (members_.count() > 1)
    send(members_.others(), schema::encode_frame(members_.header(round), schema::Reached{}, resources_->pool));
  if (auto wrong = barrier_.on_reached(members_.self, round, round)) return fail(*std::move(wrong));
  finish_barrier();
}

// --- a step that another view takes up ---

bool Member::can_go_back() const {
  return begun() && !confirming_ && resources_->replica.confirmed_rounds() < resources_->replica.committed_rounds();
}

void Member::install(Round start) {
  TG_CHECK(sealed_);
  if (!begun()) {
    TG_CHECK(start == options_.first_round, start.value(), options_.first_round.value());
    return;
  }
  Replica& replica = resources_->replica;
  if (replica.committed_rounds() == start.next()) {
    TG_CHECK(can_go_back(), start.value());
    return replica.undo();
  }
  TG_CHECK(replica.committed_rounds() == start, replica.committed_rounds().value(), start.value());
  if (replica.confirmed_rounds() == start) return;
  if (!confirming_) confirming_ = ConfirmState{start, 0};
  guarded([this] { confirm(SIZE_MAX); });
}

// --- after a step that ends with a report ---

void Member::finish_barrier() {
  if (!pending_ || pending_->confirmed || failed_ || !barrier_.missing(pending_->round).empty()) return;
  pending_->confirmed = true;
  confirming_ = ConfirmState{pending_->round, 0};
  confirm(SIZE_MAX);
  if (pending_->evaluates)
    delegate_.evaluate(step_of(pending_->round));
  else
    report({});
}

void Member::on_event(const Evaluated& event) {
  if (!counts(event.of) || !pending_ || event.of.step != step_of(pending_->round) || failed_) return;
  guarded([&] {
    report(event.counts);
    apply_actions();
  });
}

void Member::report(const engine::EvaluationCounts& counts) {
  const schema::Report own{pending_->last, counts.correct,  counts.correct_5,
                           counts.total,   counts.loss_sum, resources_->replica.segment_digests()};
  digests_ = own.digests;
  if (members_.count() > 1)
    send(members_.others(), schema::encode_frame(members_.header(pending_->round), own, resources_->pool));
  if (auto wrong = reports_.on_report(members_.self, pending_->round, own, pending_->round))
    return fail(*std::move(wrong));
  finish_reports();
}

void Member::finish_reports() {
  if (!pending_ || failed_) return;
  std::optional<Reports::Sum> sum = reports_.take_sum(pending_->round);
  if (!sum) return;
  const Pending pending = *std::exchange(pending_, std::nullopt);
  if (sum->difference) return fail(*std::move(sum->difference));
  delegate_.digests_compared(step_of(pending.round), std::exchange(digests_, {}));
  std::optional<Evaluation> evaluation;
  if (sum->total > 0) {
    evaluation = Evaluation{step_of(pending.round).value(), {sum->correct, sum->total, sum->loss_sum, sum->correct_5}};
    best_.update(accuracy_of(*evaluation), evaluation->step);
    // Evaluated once more by another view, its state is kept once more: not all may have done so.
    Replica& replica = resources_->replica;
    if (replica.keeps_best() && best_.step == evaluation->step) replica.keep_best();
  }
  delegate_.reported(evaluation);
  if (evaluation && !pending.last) {
    finish_reason_ = early_end_reason(options_.job, best_, accuracy_of(*evaluation), evaluation->step);
    if (!finish_reason_.empty()) finished_ = schema::RunState::kCompleted;
    if (finished_) return;
  }
  held_ = pending.holds;
  if (held_) return;
  if (!pending.last) return begin_step();
  finished_ = pending.stopped ? schema::RunState::kStopped : schema::RunState::kCompleted;
}

// --- beginning and end ---

Member::Member(Options options, const engine::Model& model, Delegate& delegate)
    : options_(std::move(options)),
      segments_(model.segments),
      members_(Members::of(options_.run_key, options_.view, options_.self, options_.names, names_of(model))),
      delegate_(delegate),
      optimizer_(optimizer_of(options_.job)),
      exchange_(members_, segments_, code_rule(options_.job),
                {model.statistics, shares_in(options_.view, options_.global_batch)}, options_.first_round),
      barrier_(members_),
      reports_(members_) {
  TG_CHECK(options_.global_batch > 0);
}

void Member::settle(const View& decided) {
  TG_CHECK(!begun() && decided.number() == members_.view.number() && decided.seats() == members_.view.seats());
  exchange_.set_shares(shares_in(decided, options_.global_batch));
}

void Member::begin(const schema::Commit& choice, const Resources& resources) {
  TG_CHECK(!begun() && resources.replica.confirmed_rounds() == options_.first_round, options_.first_round.value());
  resources_.emplace(resources);
  best_ = resources.best;
  layouts_ = layouts_of(options_.job, segments_, members_.count(), choice);
  exchange_.set_slice_elements(resources_->space.host_accessible() ? GradientStatistics::kSlice
                                                                   : GradientStatistics::kWholeBucket);
  worker_ = make_worker();
  const bool last = options_.first_round == round_of(Step(options_.job.steps));  // only its end is missing
  const bool evaluates = options_.evaluates_first && options_.has_test_data;
  if (!last && !evaluates) return begin_step();
  pending_ = Pending{.round = options_.first_round, .last = last, .evaluates = evaluates, .confirmed = true};
  if (evaluates)
    delegate_.evaluate(step_of(options_.first_round));
  else
    report({});
}

std::unique_ptr<Worker> Member::make_worker() {
  const schema::JobSpec& job = options_.job;
  Worker::Options options;
  options.header = members_.header(Round());
  options.seat = members_.view.number_of(options_.self);
  options.members = members_.count();
  options.seed = job.seed;
  options.outside_weight_decay = schema::decays_inside(job) ? 0.0f : static_cast<float>(job.weight_decay);
  options.host_accessible = resources_->space.host_accessible();
  return std::make_unique<Worker>(options, resources_->space.make_kernels(), resources_->codec, segments_, shared_,
                                  exchange_.scalers(), resources_->replica, resources_->pool);
}

void Member::request_stop() {
  exchange_.add_flags(schema::kStopAfterStep);
  stopping_ = true;
}

void Member::request_checkpoint() { exchange_.add_flags(schema::kCheckpoint); }

void Member::request_quiesce() { exchange_.add_flags(schema::kQuiesce); }

void Member::release() {
  if (pending_) pending_->holds = false;
  if (failed_ || sealed_ || !std::exchange(held_, false)) return;
  guarded([this] { begin_step(); });
}

void Member::rest() {
  if (!begun()) return;
  guarded([this] {
    if (confirming_) confirm(SIZE_MAX);
  });
  const Replica& replica = resources_->replica;
  if (!confirming_ && replica.committed_rounds() > replica.confirmed_rounds()) resources_->replica.undo();
}

void Member::on_event(const EngineFailed& event) {
  if (!is_ours(event.of)) return;
  unfit_ = members_.own_name() + " step " + std::to_string(step().value()) + ": the engine failed: " + event.message;
  fail(members_.cause(members_.self, "compute", unfit_));
}

void Member::fail(schema::Fail cause) {
  if (!failed_ && !sealed_) failed_ = std::move(cause);
}

// --- the small rest ---

std::uint64_t Member::execute(Task task) {
  TaskDone event{origin(), std::move(task), {}};
  guarded([&] {
    event.result = worker_->execute(event.task, [&](MadeFrame total) {
      on_event(TotalMade{event.of, std::move(total)});
    });
    on_event(event);
  });
  return event.result.sent_bytes;
}

void Member::apply_actions() {
  for (std::vector<ExchangeAction> actions = exchange_.take_actions(); !actions.empty() && !failed_;
       actions = exchange_.take_actions())
    for (const ExchangeAction& action : actions) {
      if (failed_) return;
      std::visit([this](const auto& one) { apply(one); }, action);
    }
}

void Member::apply(const Send& action) {
  send(action.to, schema::encode_frame(action.header, action.body, resources_->pool));
  delegate_.reached(schema::Phase::kScalerWait, step_of(Round(action.header.step)));
}

void Member::send(const std::vector<Rank>& to, const schema::SharedFrame& frame) {
  std::vector<Seat> seats;
  for (const Rank rank : to) seats.push_back(members_.view.seat(rank));
  delegate_.send(seats, frame);
}

Round Member::committed_rounds() const {
  return begun() ? resources_->replica.committed_rounds() : options_.first_round;
}

Step Member::step() const { return step_of(exchange_.round()); }

Waiting Member::waiting() const {
  if (!begun() || failed_ || finished_ || sealed_ || in_flight_ > 0) return {};
  if (held_) {
    const Rank senior = members_.senior();
    return {schema::Phase::kIdle, senior == members_.self ? std::vector<Rank>{} : std::vector<Rank>{senior}};
  }
  if (!pending_) return exchange_.waiting();
  if (!pending_->confirmed) return {schema::Phase::kIdle, barrier_.missing(pending_->round)};
  if (!reports_.has(pending_->round, members_.self)) return {};  // our own is not done
  return {schema::Phase::kIdle, reports_.missing(pending_->round)};
}

}  // namespace tg::daemon
