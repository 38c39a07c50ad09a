#include "daemon/run/run_view.h"

#include <exception>
#include <utility>

#include "daemon/run/shares.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// By rank, 1 = the most senior.
std::vector<std::uint32_t> seniority_in(const View& view) {
  std::vector<std::uint32_t> places(view.size());
  std::uint32_t place = 0;
  for (const Seat seat : view.by_seniority()) places[view.rank(seat)->index()] = ++place;
  return places;
}

}  // namespace

RunView::RunView(const Parts& parts, View view)
    : run_(parts), view_(std::move(view)), self_(view_.rank(parts.context.self.config.seat()).value()) {
  count_shares();
}

RunView::~RunView() = default;

// --- its beginning ---

void RunView::count_shares() {
  shares_ = member_shares(view_, run_.context.self.names, run_.identity.global_batch);
  numbers_.emplace(shares_, seniority_in(view_), self_, run_.identity.global_batch);
}

void RunView::prepared(std::shared_ptr<const Prepared> prepared, bool evaluates_first) {
  prepared_ = std::move(prepared);
  const bool has_test_data = prepared_->data != nullptr && !prepared_->data->test.labels.empty();
  if (evaluates_first && has_test_data) run_.journal.evaluation_began();
  member_ = std::make_unique<Member>(Member::Options{.run_key = run_.identity.run_key,
                                                     .view = view_,
                                                     .self = run_.context.self.config.seat(),
                                                     .names = run_.context.self.names,
                                                     .job = run_.job,
                                                     .has_test_data = has_test_data,
                                                     .global_batch = run_.identity.global_batch,
                                                     .first_round = prepared_->replica->committed_rounds(),
                                                     .evaluates_first = evaluates_first},
                                     prepared_->model, static_cast<Member::Delegate&>(*this));
}

bool RunView::settle(View decided) {
  member_->settle(decided);
  const bool others = decided.weights() != view_.weights();
  view_ = std::move(decided);
  count_shares();
  return others;
}

// With its helpers. On a device this takes memory and streams, and reads the state.
Status RunView::begin(const schema::Commit& choice) {
  TG_CHECK(is_prepared() && !begun());
  const RunContext& context = run_.context;
  std::vector<std::unique_ptr<Worker>> workers;
  const std::size_t helpers = helpers_of(workers_for(context.threads_for(run_.job)));
  try {
    member_->begin(choice, {context.machine.compute.space(),
                            context.machine.kernels,
                            *prepared_->replica,
                            run_.trainer.gradients(),
                            context.network.pool,
                            {run_.journal.status().best_accuracy, run_.journal.status().best_step}});
    for (std::size_t i = 0; i < helpers; ++i) workers.push_back(member_->make_worker());
  } catch (const std::exception& error) {
    return Error{ErrorKind::kRunFailed, run_.context.self.config.node + ": the engine failed: " + error.what()};
  }
  workers_ = std::make_unique<WorkerPool>(std::move(workers), run_.timeline,
                                          [&context, key = run_.identity.run_key](StepEvent&& event) {
                                            context.tell.happened({key, std::move(event)});
                                          });
  return {};
}

// --- what the member asks for ---

void RunView::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  const std::optional<Seat> full = run_.context.network.mesh.send(to, frame);
  if (!full) return;
  const std::string& name = run_.context.self.names[*full];
  member_->fail({ErrorKind::kUnreachable, name, "send",
                 "send queue to " + name + " is full (" + std::to_string(kMaxQueuedFrames) + " frames)"});
}

void RunView::train(Step step, const Layout& layout, kernels::ConstFloats parameters, bool early) {
  run_.trainer.train({view_.number(), step}, layout, parameters, early);
}

void RunView::segment_ready(std::size_t segment) { run_.trainer.segment_ready(segment); }

void RunView::evaluate(Step step) {
  run_.journal.evaluation_began();
  run_.trainer.evaluate({view_.number(), step});
}

void RunView::reached(schema::Phase phase, Step step) { run_.context.machine.fault.reached(phase, step.value()); }

// One clock for all: that of the lowest rank.
void RunView::step_begins(Step step) {
  run_.journal.step_began(step.value());
  if (self_ == Rank(0) && run_.keeper.checkpoint_is_due()) member_->request_checkpoint();
  const RunContext& context = run_.context;
  if (!context.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step.value())) return;
  prepared_->replica->flip_bit(prepared_->model.segments[0].offset);
  context.news.log.warning("fault-injected",
                           {{"kind", "flip"}, {"segment", prepared_->model.segments[0].name}, {"step", step.value()}});
}

bool RunView::may_start_early(Step step) {
  return !run_.context.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step.value());
}

bool RunView::work() { return workers_ && !run_.keeper.holds(member_->step().value()) && workers_->work(*member_); }

// --- its news ---

void RunView::computed(const GradientReady& last) { run_.journal.computed(last); }

void RunView::committed(const Member::Committed& committed) { run_.journal.committed(committed); }

void RunView::confirmed(Step step, bool checkpoint) {
  if (run_.journal.status().step < step.value()) run_.journal.confirmed(step.value());  // else before its report
  if (!checkpoint) return;
  const std::uint64_t digest = Replica::combine(prepared_->replica->segment_digests());
  run_.keeper.write_checkpoint({run_.identity.lineage(), view_.number(), step.value(), digest},
                               run_.journal.refreshed(), run_.journal.metrics());
}

void RunView::reported(const std::optional<Member::Evaluation>& evaluation) { run_.journal.reported(evaluation); }

void RunView::state_digests(const std::vector<std::uint64_t>& digests) {
  run_.journal.digest(Replica::combine(digests), prepared_->replica->confirmed_rounds().value());
}

void RunView::waited(const Waiting& waiting, Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (now - since > Standstill::kOwnSleep) return;  // this process was stopped: nobody else is to blame
  run_.journal.waited(view_, waiting, std::chrono::duration<double>(now - since).count());
  if (run_.timeline->is_enabled())
    run_.timeline->add(Timeline::Track::kNode, "wait", member_->step().value(), since, now);
}

// --- watching ---

std::uint64_t RunView::step_timeout_ms() const {
  return std::max(run_.job.step_timeout_ms, static_cast<std::uint64_t>(10'000 * numbers_->median_step_seconds()));
}

// The others' deadline for this node has passed by then, or is about to.
std::string RunView::stuck() const {
  if (stood_still_ < std::chrono::milliseconds(step_timeout_ms() * 3 / 4) || !member_->waiting().ranks.empty())
    return "";
  return run_.context.self.config.node + " is stuck in " +
         std::string(to_word(run_.context.news.progress.phase.load()));
}

// Everybody alive, nobody stuck in its own work, and still nothing comes: a frame was lost on the way.
void RunView::tick() {
  const auto limit = std::chrono::milliseconds(step_timeout_ms() * 3 / 2);
  stood_still_ = standstill_.tick(Clock::now(), run_.context.news.progress.count);
  const bool stands_still = stood_still_ >= limit;
  const Waiting waits = member_->waiting();
  if (!stands_still || waits.ranks.empty()) return;
  const std::string phase = member_->reporting() ? "evaluate" : std::string(to_word(waits.phase));
  const Rank first = waits.ranks.front();
  const std::string& name = member_->members().names[first];
  member_->fail({ErrorKind::kUnreachable, name, phase,
                 run_.context.self.config.node + " has waited " + std::to_string(limit.count() / 1000) + " s for " +
                     name + " in " + phase + " of step " + std::to_string(run_.journal.status().step) +
                     ": it is alive but its frames do not come"});
}

}  // namespace tg::daemon
