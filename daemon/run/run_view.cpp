#include "daemon/run/run_view.h"

#include <exception>
#include <utility>

#include "daemon/run/shares.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// Returns the seniority by rank, 1 = the senior.
std::vector<std::uint32_t> seniority_in(const View& view) {
  std::vector<std::uint32_t> places(view.size());
  std::uint32_t place = 0;
  for (const Seat seat : view.by_seniority()) places[view.rank(seat)->index()] = ++place;
  return places;
}

}  // namespace

RunView::RunView(const Parts& parts, View view)
    : run_(parts), view_(std::move(view)), self_(view_.rank(parts.context.self.config.seat()).value()) {
  update_shares();
}

RunView::~RunView() = default;

// --- the beginning ---

void RunView::update_shares() {
  shares_ = member_shares(view_, run_.context.self.names, run_.identity.global_batch);
  numbers_.emplace(shares_, seniority_in(view_), self_, run_.identity.global_batch);
}

void RunView::on_prepared(std::shared_ptr<const Prepared> prepared, bool evaluates_first) {
  prepared_ = std::move(prepared);
  const bool has_test_data = prepared_->data != nullptr && !prepared_->data->test.labels.empty();
  if (evaluates_first && has_test_data) run_.reporter.on_evaluation_begun();
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
  const bool weights_changed = decided.weights() != view_.weights();
  view_ = std::move(decided);
  update_shares();
  return weights_changed;
}

// Also makes the helpers. On a device this allocates memory and streams, and reads the state.
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
                            {run_.reporter.status().best_accuracy, run_.reporter.status().best_step}});
    for (std::size_t i = 0; i < helpers; ++i) workers.push_back(member_->make_worker());
  } catch (const std::exception& error) {
    return Error{ErrorKind::kRunFailed, run_.context.self.config.node + ": the engine failed: " + error.what()};
  }
  workers_ = std::make_unique<WorkerPool>(std::move(workers), run_.timeline,
                                          [&context, run_key = run_.identity.run_key](StepEvent&& event) {
                                            context.hooks.on_step_event({run_key, std::move(event)});
                                          });
  return {};
}

// --- the member's requests ---

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
  run_.reporter.on_evaluation_begun();
  run_.trainer.evaluate({view_.number(), step});
}

void RunView::reached(schema::Phase phase, Step step) { run_.context.machine.fault.reached(phase, step.value()); }

// The clock of the lowest rank decides for all.
void RunView::step_begins(Step step) {
  run_.reporter.on_step_begun(step.value());
  if (self_ == Rank(0) && run_.checkpointer.is_checkpoint_due()) member_->request_checkpoint();
  const RunContext& context = run_.context;
  if (!context.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step.value())) return;
  prepared_->replica->flip_bit(prepared_->model.segments[0].offset);
  context.news.log.warning("fault-injected",
                           {{"kind", "flip"}, {"segment", prepared_->model.segments[0].name}, {"step", step.value()}});
}

bool RunView::may_start_early(Step step) {
  return !run_.context.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step.value());
}

bool RunView::work() {
  return workers_ && !run_.checkpointer.must_pause(member_->step().value()) && workers_->work(*member_);
}

// --- the member's events ---

void RunView::computed(const GradientReady& last) { run_.reporter.on_computed(last); }

void RunView::committed(const Member::Committed& committed) { run_.reporter.on_committed(committed); }

void RunView::confirmed(Step step, bool checkpoint) {
  if (run_.reporter.status().step < step.value()) run_.reporter.on_confirmed(step.value());  // else its report did
  if (!checkpoint) return;
  const std::uint64_t digest = Replica::combine(prepared_->replica->segment_digests());
  run_.checkpointer.write_checkpoint({run_.identity.lineage(), view_.number(), step.value(), digest},
                                     run_.reporter.refreshed(), run_.reporter.metrics());
}

void RunView::reported(const std::optional<Member::Evaluation>& evaluation) { run_.reporter.on_reported(evaluation); }

void RunView::digests_compared(Step step, const std::vector<std::uint64_t>& digests) {
  run_.reporter.set_digest(Replica::combine(digests), step.value());
}

void RunView::on_waited(const Waiting& waiting, Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (now - since > StallDetector::kMaxTickGap) return;  // this process was stopped: the peers are not to blame
  run_.reporter.on_waited(view_, waiting, std::chrono::duration<double>(now - since).count());
  if (run_.timeline->is_enabled())
    run_.timeline->add(Timeline::Track::kNode, "wait", member_->step().value(), since, now);
}

// --- stalls ---

std::uint64_t RunView::step_timeout_ms() const {
  return std::max(run_.job.step_timeout_ms, static_cast<std::uint64_t>(10'000 * numbers_->median_step_seconds()));
}

// By then the others' deadline for this node has passed, or is about to.
std::string RunView::stall_reason() const {
  if (stalled_for_ < std::chrono::milliseconds(step_timeout_ms() * 3 / 4) || !member_->waiting().ranks.empty())
    return "";
  return run_.context.self.config.node + " is stuck in " +
         std::string(to_word(run_.context.news.progress.phase.load()));
}

// All members are alive and none is stuck, and still no frame arrives: one was lost on the way.
void RunView::tick() {
  const auto limit = std::chrono::milliseconds(step_timeout_ms() * 3 / 2);
  stalled_for_ = stall_detector_.tick(Clock::now(), run_.context.news.progress.count);
  const bool stalled = stalled_for_ >= limit;
  const Waiting waits = member_->waiting();
  if (!stalled || waits.ranks.empty()) return;
  const std::string phase = member_->reporting() ? "evaluate" : std::string(to_word(waits.phase));
  const Rank first = waits.ranks.front();
  const std::string& name = member_->members().names[first];
  member_->fail({ErrorKind::kUnreachable, name, phase,
                 run_.context.self.config.node + " waited " + std::to_string(limit.count() / 1000) + " s for " + name +
                     " in " + phase + " of step " + std::to_string(run_.reporter.status().step) +
                     ": it is alive but its frames do not arrive"});
}

}  // namespace tg::daemon
