#include "daemon/simulate/simulation.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "daemon/run/first_record.h"
#include "daemon/run/prepare.h"
#include "daemon/run/run_numbers.h"
#include "daemon/run/shares.h"
#include "daemon/simulate/gradient_lines.h"
#include "daemon/simulate/members_memory.h"
#include "daemon/simulate/share_engines.h"
#include "daemon/simulate/simulated_view.h"
#include "daemon/simulate/simulation_folder.h"
#include "daemon/step/job_layout.h"
#include "engine/compute_device.h"
#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "kernels/base/random.h"
#include "kernels/host_memory_space.h"
#include "kernels/kernels.h"
#include "schema/text.h"
#include "schema/version.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSlice{5}, kTellEvery{10}, kSaveEvery{30};
constexpr std::uint64_t kFirstTold = 5;  // steps, by which the time that is left can be judged
constexpr std::uint64_t kMaxSliceSteps = 10'000;
constexpr std::uint64_t kEngineThreads = 1;  // the bits depend on it
constexpr std::uint64_t kKey = 1;            // no other run's frames can arrive here

// Numbers as wide as the last one: by name, members are in the order of their ranks, as a run's are.
std::string name_of(Rank rank, std::size_t members) {
  const std::string number = std::to_string(rank.index() + 1);
  return "member-" + std::string(std::to_string(members).size() - number.size(), '0') + number;
}

// Thrown through the preparation once its result is not needed any more.
struct Ended {};

class Simulation {
 public:
  Simulation(const SimulationOptions& options, const engine::ComputeDevice& compute, const kernels::Kernels& kernels,
             const std::function<void(const std::string&)>& say)
      : options_(options),
        job_(options.job),
        compute_(compute),
        kernels_(kernels),
        say_(say),
        folder_(options.directory),
        weights_(options.weights.begin(), options.weights.end()),
        lanes_(std::min<std::uint64_t>(options.threads, weights_.size())),
        nodes_(weights_.size()),
        global_batch_(schema::resolved_global_batch(job_, weights_.size())) {
    for (const Rank rank : weights_.places()) names_.push_back(name_of(rank, weights_.size()));
    constexpr std::size_t kMaxDirect = 2;
    choice_.exchange = job_.exchange.value_or(weights_.size() > kMaxDirect ? schema::ExchangeKind::kSharded
                                                                           : schema::ExchangeKind::kDirect);
    choice_.window_bytes = kSimulatedWindowBytes;
    choice_.coding = job_.coding.value_or(schema::Coding::kRaw);
  }

  Result<bool> compute(const std::function<bool()>& ends);

 private:
  Status prepare_members(const std::optional<SavedStart>& start, const std::function<bool()>& ends);
  View first_view() const { return View::of_all(Per<Seat, std::uint16_t>(weights_.begin(), weights_.end())); }
  void fill_record(const std::optional<SavedStart>& start);
  Status compute_slice(Step last);
  void committed(const Member::Committed& committed);
  void evaluated(const Member::Evaluation& evaluation);
  void write_line(bool evaluated);
  void write_gradients();
  Status save();
  std::uint64_t slice_steps() const;

  const SimulationOptions& options_;
  schema::JobSpec job_;
  const engine::ComputeDevice& compute_;
  const kernels::Kernels& kernels_;
  const std::function<void(const std::string&)>& say_;
  SimulationFolder folder_;
  const Per<Rank, std::uint16_t> weights_;
  const std::uint64_t lanes_;
  Per<Seat, std::string> names_;
  Per<Rank, SimulatedNode> nodes_;
  const std::uint64_t global_batch_;
  schema::Commit choice_;
  schema::FramePool pool_;
  std::shared_ptr<const Prepared> prepared_;
  std::unique_ptr<ShareEngines> engines_;
  std::optional<RunNumbers> numbers_;
  RunRecord record_;
  double gradient_seconds_ = 0;        // for all members' gradients of a step, as first measured
  std::uint64_t lines_ = 0;            // the last step with a line
  std::uint64_t steps_here_ = 0;       // that this call has taken
  std::optional<SimulatedView> view_;  // the slice's
  std::string why_ended_;              // before its last step; "" = it has not
  Clock::time_point began_ = Clock::now(), said_ = began_, saved_ = began_;
};

Status Simulation::prepare_members(const std::optional<SavedStart>& start, const std::function<bool()>& ends) {
  PreparationOptions options;
  options.job = job_;
  options.job.threads = 0;  // a thread for each member's engine, whatever a node would have
  options.data_dir = options_.data_dir.value_or(job_.data_dir);
  options.threads = kEngineThreads;
  options.node = "this machine";
  options.start = start;
  options.log_progress = [this](const std::string& line) { say_("reading data: " + line); };
  Result<TrainingKit> kit = prepare(options, {Rank(0), weights_, global_batch_}, compute_, [&ends] {
    if (ends()) throw Ended{};
  });
  if (!kit) return kit.error();
  if (const std::string& now = kit->view->engine_build; start && start->record->own.engine_build != now)
    return Error{ErrorKind::kRefused, options_.directory + " was begun with " + start->record->own.engine_build +
                                          ", and here it is " + now +
                                          ": go on with that build, on such a processor, or begin again in a new "
                                          "folder with -o"};
  prepared_ = kit->prepared;
  job_.steps = prepared_->steps;
  if (!prepared_->read.summary.empty()) say_(prepared_->read.summary);
  for (const std::string& warning : prepared_->read.warnings) say_("warning: " + warning);
  const std::uint64_t at_once = lanes_ * kit->view->local_batch;
  gradient_seconds_ = kit->view->step_seconds * static_cast<double>(global_batch_) / static_cast<double>(at_once);
  const MembersToBe members{.job = job_,
                            .prepared = *prepared_,
                            .first = *kit->view,
                            .weights = weights_,
                            .global_batch = global_batch_,
                            .choice = choice_,
                            .all_replicas = options_.all_replicas,
                            .lanes = lanes_,
                            .advice = "ask for fewer members, or --threads 1"};
  if (Status fits = check_memory_of_members(members, compute_, say_); !fits) return fits;
  nodes_[Rank(0)] = {prepared_->replica, std::move(kit->gradients)};
  record_.own = member_record(names_[Seat(0)], *prepared_, *kit->view, kernels_, compute_);
  engines_ = std::make_unique<ShareEngines>(options, *std::move(kit), compute_, lanes_);
  for (const Rank rank : weights_.places()) {
    if (rank == Rank(0)) continue;
    if (!options_.all_replicas) {
      nodes_[rank] = follower_of(nodes_[Rank(0)], compute_.space(), prepared_->model);
      continue;
    }
    Result<SimulatedNode> copy = copy_of(nodes_[Rank(0)], compute_.space(), prepared_->model, job_.seed);
    if (!copy) return copy.error();
    nodes_[rank] = *std::move(copy);
  }
  return {};
}

void Simulation::fill_record(const std::optional<SavedStart>& start) {
  const RunBeginning beginning{
      job_, *prepared_, global_batch_,
      to_word(layouts_of(job_, prepared_->model.segments, weights_.size(), choice_).layout.exchange),
      to_word(choice_.coding)};
  schema::RunStatus status;
  if (start) status = start->record->status;
  fill_first_status(beginning, status);
  status.reason.clear();
  status.members = numbers_->member_rows();
  if (start) {
    status.counters() = start->counters;
  } else {
    status.started_ms = status.since_ms;
    status.initial_digest = prepared_->initial_digest;
    status.id = schema::draw_run_id(status.model, status.started_ms, draw_bits());
  }
  const std::vector<std::string> names(names_.begin(), names_.end());
  record_ = first_record(beginning, schema::canonical_job(options_.job), status, std::move(record_.own), names, names,
                         options_.weights);
  record_.key = kKey;
  for (const std::string& name : names_) record_.builds[name] = record_.own.engine_build;
  record_.build = schema::build_id();
}

Result<bool> Simulation::compute(const std::function<bool()>& ends) {
  const Result<std::optional<SavedStart>> start = folder_.take(job_, options_.weights);
  if (!start) return start.error();
  if (Status prepared = prepare_members(*start, ends); !prepared) return prepared.error();
  const View view = first_view();
  numbers_.emplace(member_shares(view, names_, global_batch_), std::vector<std::uint32_t>(view.size(), 1), Rank(0),
                   global_batch_);
  fill_record(*start);
  schema::RunStatus& status = record_.status;
  lines_ = status.step;
  if (Status opened = folder_.open(record_, status.step, options_.gradients_every > 0); !opened) return opened.error();
  const auto left = static_cast<double>(status.steps - status.step);
  say_(std::string(*start ? "goes on with " : "run ") + status.id + ": " + status.model + " on " + status.data +
       ", steps " + std::to_string(status.step + 1) + " to " + std::to_string(status.steps) +
       "; their gradients alone take about " + schema::format_span(left * gradient_seconds_));
  began_ = said_ = saved_ = Clock::now();
  while (status.state == schema::RunState::kRunning) {
    if (Status done = compute_slice(Step(std::min(status.step + slice_steps(), status.steps))); !done)
      return done.error();
    if (status.step == status.steps || !why_ended_.empty())
      status.state = schema::RunState::kCompleted;
    else if (ends())
      status.state = schema::RunState::kInterrupted;
    if (status.state != schema::RunState::kRunning || Clock::now() - saved_ >= kSaveEvery)
      if (Status kept = save(); !kept) return kept.error();
  }
  const bool complete = status.state == schema::RunState::kCompleted;
  say_(std::string(to_word(status.state)) + " at step " + std::to_string(status.step) + ": digest " +
       hex_digest(status.digest) + (complete ? "" : "; the same command goes on from here") +
       (why_ended_.empty() ? "" : "; " + why_ended_));
  return complete;
}

Status Simulation::compute_slice(Step last) {
  const Step first(record_.status.step);
  if (Status fits = engines_->fit(job_, weights_, global_batch_, 0,
                                  Per<Rank, std::uint64_t>(weights_.size(), kEngineThreads), first);
      !fits)
    return fits;
  Per<Rank, SimulatedNode*> nodes;
  for (SimulatedNode& node : nodes_) nodes.push_back(&node);
  view_.emplace(SimulatedView::Options{.view = first_view(),
                                       .names = names_,
                                       .job = job_,
                                       .choice = choice_,
                                       .global_batch = global_batch_,
                                       .has_test_data = !prepared_->data->test.labels.empty(),
                                       .first = first,
                                       .last = last,
                                       .best = {record_.status.best_accuracy, record_.status.best_step}},
                SimulatedView::Environment{prepared_->model, compute_.space(), kernels_, pool_, *engines_}, nodes,
                SimulatedView::Listeners{.committed = [this](const Member::Committed& one) { committed(one); },
                                         .evaluated = [this](const Member::Evaluation& one) { evaluated(one); }});
  numbers_->start_counting(0);
  numbers_->on_step_begun();
  const Status done = view_->run();
  if (done && record_.status.step != lines_) write_line(false);
  if (done) why_ended_ = view_->why_completed();
  view_.reset();
  return done;
}

// The line of a step whose evaluation may follow is written with that, or when the next step comes.
void Simulation::committed(const Member::Committed& committed) {
  schema::RunStatus& status = record_.status;
  if (status.step != lines_) write_line(false);
  numbers_->on_committed(committed, view_->sent_bytes());
  numbers_->on_step_begun();
  status.step = committed.step;
  status.loss = committed.loss_sum / static_cast<double>(global_batch_);
  status.learning_rate = committed.learning_rate;
  if (!committed.ends) write_line(false);
  if (options_.gradients_every > 0 && committed.step % options_.gradients_every == 0) write_gradients();
  if (++steps_here_ != kFirstTold && Clock::now() - said_ < kTellEvery) return;
  said_ = Clock::now();
  const double taken = std::chrono::duration<double>(said_ - began_).count();
  const double left = static_cast<double>(status.steps - status.step) * taken / static_cast<double>(steps_here_);
  say_("step " + std::to_string(status.step) + " of " + std::to_string(status.steps) + ", loss " +
       std::to_string(status.loss) + ", about " + schema::format_span(left) + " left");
}

void Simulation::evaluated(const Member::Evaluation& evaluation) {
  add_evaluation(evaluation, prepared_->model.classes, record_.status);
  say_("step " + std::to_string(evaluation.step) + ": accuracy " + std::to_string(record_.status.evaluation_accuracy));
  write_line(true);
}

void Simulation::write_line(bool evaluated) {
  lines_ = record_.status.step;
  folder_.add_line(numbers_->metrics_row(record_.status, evaluated, prepared_->model.segments));
}

// The engines overwrite them only after the commit was told: the first member is the first to commit.
void Simulation::write_gradients() {
  const engine::SegmentTable& segments = prepared_->model.segments;
  std::vector<std::span<const float>> gradients;
  for (const SimulatedNode& node : nodes_) {
    const kernels::ConstFloats gradient = node.gradient.floats();
    gradients.emplace_back(gradient.address(), gradient.size());
  }
  const std::uint64_t step = record_.status.step;
  const Layouts layouts = layouts_of(job_, segments, weights_.size(), choice_);
  const Layout& layout = step <= job_.float_steps ? *layouts.of_float_steps : layouts.layout;
  for (const std::string& line : gradient_lines(step, job_, layout, segments, gradients, kernels_))
    folder_.add_gradient_line(line);
}

Status Simulation::save() {
  schema::RunStatus& status = record_.status;
  numbers_->fill(status);
  status.reason = why_ended_;
  status.since_ms = unix_time_ms();
  status.digest_step = status.step;
  status.digest = Replica::combine(prepared_->replica->segment_digests());
  for (schema::MemberStatus& row : status.members) row.state = status.state;
  status.members.front().digest = status.digest;
  status.members.front().digest_step = status.members.front().step = status.step;
  saved_ = Clock::now();
  return folder_.save(record_, *prepared_);
}

// As many as make a few seconds, by what the steps so far took.
std::uint64_t Simulation::slice_steps() const {
  const double seconds = numbers_->median_step_seconds();
  if (seconds <= 0) return 1;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::chrono::duration<double>(kSlice).count() / seconds),
                                   1, kMaxSliceSteps);
}

}  // namespace

Result<bool> simulate(const SimulationOptions& options, const std::function<void(const std::string&)>& say,
                      const std::function<bool()>& ends) {
  if (const Status valid = schema::validate_job(options.job, options.weights.size()); !valid) return valid.error();
  const Result<const kernels::Kernels*> kernels = kernels::select("auto");
  if (!kernels) return kernels.error();
  kernels::HostMemorySpace host(**kernels);
  const engine::ComputeDevice compute(host);
  try {
    return Simulation(options, compute, **kernels, say).compute(ends);
  } catch (const Ended&) {
    say("ended before its first step");
    return false;
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kRefused, "this machine has not enough memory for all members"};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kRunFailed, std::string("it cannot be computed: ") + error.what()};
  }
}

}  // namespace tg::daemon
