#include "daemon/run/run.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "daemon/membership/choose_exchange.h"
#include "daemon/run/memory_check.h"
#include "daemon/run/preparation.h"
#include "daemon/run/recorded_end.h"
#include "daemon/run/shares.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "daemon/store/artefacts.h"
#include "daemon/store/checkpoints.h"
#include "kernels/base/check.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::milliseconds kPublishEvery{100};  // how old the numbers of status may be
constexpr std::chrono::seconds kLogEvery{10};

// Unsaved states of earlier runs count; where the machine is asked what is left, they are gone from it already.
std::uint64_t memory_for_a_run(const RunContext& context) {
  const std::uint64_t configured = context.self.config.memory_mib << 20, held = context.disk.store.held().bytes;
  return configured == 0 ? 0 : std::max<std::uint64_t>(configured, held + 1) - held;
}

std::string unsaved_note(const RunContext& context) {
  const RunStore::Held held = context.disk.store.held();
  return daemon::unsaved_note(held.bytes, held.runs);
}

Trainer::Prepare preparation(const RunContext& context, const std::string& id, const schema::JobSpec& job, Rank self,
                             const Per<Rank, std::uint16_t>& weights) {
  const PreparationOptions options{.job = job,
                                   .data_dir = context.data_dir_for(job),
                                   .threads = context.threads_for(job),
                                   .self = self,
                                   .weights = weights,
                                   .node = context.self.config.node,
                                   .unsaved_note = unsaved_note(context),
                                   .memory_bytes = memory_for_a_run(context),
                                   .memory_dir = context.self.config.state_dir + "/data",
                                   .say =
                                       [&log = context.news.log, id](const std::string& line) {
                                         log.info("preparing", {{"run", id}, {"progress", line}});
                                       },
                                   .images =
                                       [&progress = context.news.progress](std::size_t done, std::size_t of) {
                                         progress.images_done = done;
                                         progress.images = of;
                                       }};
  return [options, &compute = context.machine.compute](const std::function<void()>& advance) {
    return prepare(options, compute, advance);
  };
}

// The compute thread's reports, as events of this run.
Trainer::Hooks trainer_hooks(const RunContext& context, std::uint64_t key) {
  return {[&context, key](auto result) {
            context.tell.prepared({key, std::move(result)});
          },
          [&context, key](StepEvent&& event) {
            context.tell.happened({key, std::move(event)});
          }};
}

}  // namespace

Run::Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view)
    : context_(context),
      identity_(std::move(identity)),
      job_(std::move(job)),
      view_(std::move(view)),
      global_batch_(schema::resolved_global_batch(job_, view_.size())),
      shares_(member_shares(view_, context.self.names, identity_.weights, global_batch_)),
      candidate_(context, identity_.key, job_),
      numbers_(shares_, view_.rank(context.self.config.seat()).value(), global_batch_) {
  if (job_.trace) timeline_->start(context_.self.config.node, context_.self.config.seat().index());
  const Rank self = view_.rank(context_.self.config.seat()).value();
  const Per<Rank, std::uint16_t> weights = by_rank(view_, identity_.weights);
  trainer_ =
      std::make_unique<Trainer>(Trainer::Options{.job = job_, .self = self, .weights = weights, .run = identity_.id},
                                preparation(context_, identity_.id, job_, self, weights), context_.news.progress,
                                context_.machine.fault, timeline_, trainer_hooks(context_, identity_.key));
}

Run::~Run() = default;

// --- before it begins ---

void Run::prepared(Result<std::shared_ptr<const Prepared>> result) {
  if (result.ok()) {
    prepared_ = result.value();
    // Made now: as soon as we have voted, frames of the others may come, even before the commit.
    const bool has_test_data = prepared_->data != nullptr && !prepared_->data->test.labels.empty();
    member_ = std::make_unique<Member>(Member::Options{.run_key = identity_.key,
                                                       .view = view_,
                                                       .self = context_.self.config.seat(),
                                                       .names = context_.self.names,
                                                       .weights = by_rank(view_, identity_.weights),
                                                       .job = job_,
                                                       .has_test_data = has_test_data},
                                       prepared_->model, static_cast<Member::Delegate&>(*this));
  }
  candidate_.prepared(std::move(result));
}

engine::ModelOptions Run::model() const {
  TG_CHECK(prepared_ != nullptr);
  return model_options(job_, prepared_->model);
}

schema::StartReply Run::facts(const schema::Commit& choice) const {
  TG_CHECK(prepared_ != nullptr);
  const engine::SegmentTable& segments = prepared_->model.segments;
  const Layouts layouts = layouts_of(job_, segments, view_.size(), choice);
  schema::StartReply reply;
  reply.run_id = identity_.id;
  reply.parameters = segments.parameter_count();
  reply.members = view_.size();
  reply.global_batch = global_batch_;
  reply.local_batch = prepared_->local_batch;
  reply.shares = shares_;
  reply.exchange = to_word(layouts.layout.exchange);
  reply.coding = to_word(layouts.layout.coding);
  reply.compute_seconds = prepared_->step_seconds;
  reply.link_mbps = candidate_.link_mbps();
  reply.memory_bytes = member_bytes(job_, prepared_->model, layouts, workers_for(context_.threads_for(job_))) +
                       prepared_->activation_bytes - prepared_->device_bytes;
  reply.device_bytes = prepared_->device_bytes + prepared_->device_reserve;
  return reply;
}

// --- the beginning ---

// Without room for the copy that checkpoints are written from, training waits for them.
Status Run::check_memory_of(const schema::StartReply& facts) {
  const engine::Model& model = prepared_->model;
  const std::uint64_t held = Replica::bytes(model, prepared_->replica->slot_count(), keeps_average(job_)) +
                             model.segments.padded_count() * sizeof(float) + prepared_->activation_bytes -
                             prepared_->device_bytes;  // there it has been taken already
  const std::uint64_t allowed = memory_for_a_run(context_);
  if (check_memory(facts.memory_bytes, held, allowed).ok()) return {};
  const Status fits = check_memory(facts.memory_bytes - checkpoint_bytes(job_, model), held, allowed);
  copies_ = false;
  if (fits.ok()) return {};
  return Error{fits.error().kind, fits.error().message + " (exchange = " + facts.exchange +
                                      ", coding = " + facts.coding + " was chosen)" + unsaved_note(context_)};
}

RunRecord Run::first_record() const {
  RunRecord record;
  record.id = identity_.id;
  record.spec = identity_.spec;
  record.seed = job_.seed;
  record.spec_hash = schema::job_hash(job_);
  record.model_hash = prepared_->model_hash;
  record.data_hash = prepared_->data_hash;
  record.initial_digest = prepared_->initial_digest;
  record.node = context_.self.config.node;
  record.member_names = member_->members().names;
  record.weights = by_rank(view_, identity_.weights);
  record.key = identity_.key;
  record.own = {context_.self.config.node,
                prepared_->engine_build,
                prepared_->threads,
                std::string(context_.machine.kernels.name),
                to_word(context_.machine.compute.engine()),
                context_.machine.compute.name(),
                to_word(context_.machine.compute.math()),
                prepared_->engine_choices};
  record.view = view_.number();
  record.build = context_.self.build;
  return record;
}

Status Run::begin(const schema::Commit& choice) {
  TG_CHECK(prepared_ != nullptr && !begun());
  const schema::StartReply reply = facts(choice);
  if (Status fits = check_memory_of(reply); !fits.ok()) return fits;
  schema::RunStatus& status = numbers_.status();
  status.id = identity_.id;
  status.state = schema::RunState::kRunning;
  status.since_ms = status.started_ms = unix_time_ms();
  status.model = to_word(job_.model);
  status.data = to_word(job_.data);
  status.exchange = reply.exchange;
  status.coding = reply.coding;
  status.gradients = to_word(job_.gradients);
  status.steps = job_.steps;
  status.parameters = reply.parameters;
  status.initial_digest = status.digest = prepared_->initial_digest;
  Numbers& counted = context_.news.metrics.numbers();
  counted.run_step = 0;
  counted.run_started = static_cast<double>(status.started_ms) / 1000;
  counted.checkpoint_every = static_cast<double>(job_.checkpoint_every_ms) / 1000;
  record_ = first_record();
  publish(true);
  record_.status = status;
  if (Status written = context_.disk.store.write(record_); !written.ok()) return written;
  numbers_.open_metrics(context_.disk.store.directory(identity_.id));
  logged_ = Clock::now();
  numbers_.start_counting(context_.network.mesh.links().sent_bytes());  // what earlier runs sent is not this one's
  context_.news.log.info("run-started", {{"run", identity_.id},
                                         {"model", to_word(job_.model)},
                                         {"members", view_.size()},
                                         {"seed", job_.seed},
                                         {"exchange", reply.exchange},
                                         {"coding", reply.coding},
                                         {"link-mbps", candidate_.link_mbps()},
                                         {"kernels", context_.machine.kernels.name},
                                         {"engine", prepared_->engine_build},
                                         {"device", context_.machine.compute.name()},
                                         {"local-batch", reply.local_batch},
                                         {"memory-bytes", reply.memory_bytes},
                                         {"activation-bytes", prepared_->activation_bytes},
                                         {"device-bytes", prepared_->device_bytes},
                                         {"initial-digest", hex_digest(prepared_->initial_digest)}});
  for (const std::string& note : prepared_->initial_notes)
    context_.news.log.info("initial", {{"run", identity_.id}, {"what", note}});
  if (const std::string uneven = schema::uneven_shares(shares_); !uneven.empty())
    context_.news.log.info("batch-split", {{"run", identity_.id}, {"samples", uneven}});
  if (job_.checkpoint_every_ms > 0 && !copies_) {
    status.reason = "no memory for a copy: training waits while a checkpoint is written";
    context_.news.log.warning("checkpoint-without-copy", {{"run", identity_.id}, {"what", status.reason}});
  }
  checkpointed_ = Clock::now();
  return begin_member(choice);
}

// With its helpers. On a device this takes memory and streams, and reads the state.
Status Run::begin_member(const schema::Commit& choice) {
  std::vector<std::unique_ptr<Worker>> workers;
  const std::size_t helpers = helpers_of(workers_for(context_.threads_for(job_)));
  try {
    member_->begin(choice, {context_.machine.compute.home(), context_.machine.kernels, *prepared_->replica,
                            trainer_->gradients(), context_.network.pool});
    for (std::size_t i = 0; i < helpers; ++i) workers.push_back(member_->make_worker());
  } catch (const std::exception& error) {
    return Error{ErrorKind::kRunFailed, std::string("the engine failed: ") + error.what()};
  }
  crew_ = std::make_unique<Crew>(std::move(workers), timeline_,
                                 [&context = context_, key = identity_.key](StepEvent&& event) {
                                   context.tell.happened({key, std::move(event)});
                                 });
  return {};
}

// --- what the member asks for ---

void Run::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  const std::optional<Seat> full = context_.network.mesh.send(to, frame);
  if (!full) return;
  const std::string& name = context_.self.names[*full];
  member_->fail({ErrorKind::kRunFailed, name, "send",
                 name + " takes no frames any more: " + std::to_string(kMostWaitingFrames) + " wait for it"});
}

void Run::train(std::uint64_t step, const Layout& layout, kernels::ConstFloats parameters, bool early) {
  trainer_->train(step, layout, parameters, early);
}

void Run::segment_ready(std::size_t segment) { trainer_->segment_ready(segment); }

void Run::evaluate(std::uint64_t step) {
  evaluating_ = Clock::now();
  trainer_->evaluate(step);
}

void Run::reached(schema::Phase phase, std::uint64_t step) { context_.machine.fault.reached(phase, step); }

void Run::step_begins(std::uint64_t step) {
  context_.news.progress.step = step;
  numbers_.step_began();
  if (!context_.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step)) return;
  prepared_->replica->flip_bit(prepared_->model.segments[0].offset);
  context_.news.log.warning("fault-injected",
                            {{"kind", "flip"}, {"segment", prepared_->model.segments[0].name}, {"step", step}});
}

bool Run::may_start_early(std::uint64_t step) {
  return !context_.machine.fault.is(schema::FaultKind::kFlip, schema::Phase::kForward, step);
}

// --- its news ---

void Run::computed(const GradientReady& last) {
  computed_ = Clock::now();
  Numbers& numbers = context_.news.metrics.numbers();
  numbers.observe(StepPart::kForward, last.forward_seconds);
  numbers.observe(StepPart::kBackward, last.backward_seconds);
  numbers.data_wait_seconds += last.data_seconds;
  numbers_.waited_for_data(last.data_seconds);
}

void Run::committed(const Member::Committed& committed) {
  ++context_.news.progress.count;
  context_.news.progress.step = committed.step;
  numbers_.committed(committed, context_.network.mesh.links().sent_bytes());
  Numbers& counted = context_.news.metrics.numbers();
  ++counted.steps;
  counted.samples += numbers_.own_samples();
  counted.loss = numbers_.status().loss;
  const StepTraffic& traffic = committed.traffic;
  counted.nonzero_ratio = traffic.elements == 0
                              ? Numbers::kUnknown
                              : static_cast<double>(traffic.nonzeros) / static_cast<double>(traffic.elements);
  counted.run_step = committed.step;
  counted.observe(StepPart::kExchange, std::chrono::duration<double>(Clock::now() - computed_).count());
  publish(committed.ends);
  log_progress(committed.ends);
  if (committed.ends) return;
  numbers_.write_metrics(false);
  write_checkpoint_if_due();
}

// The loss in the log: ten times a run, and every ten seconds.
void Run::log_progress(bool ends) {
  const schema::RunStatus& status = numbers_.status();
  const Clock::time_point time = Clock::now();
  const std::uint64_t tenth = std::max<std::uint64_t>(status.steps / 10, 1);
  if (!ends && status.step % tenth != 0 && time - logged_ < kLogEvery) return;
  logged_ = time;
  context_.news.log.info("progress", {{"run", identity_.id},
                                      {"step", status.step},
                                      {"steps", status.steps},
                                      {"loss", status.loss},
                                      {"learning-rate", status.learning_rate}});
  log_damaged();
}

// Files that are done without, each once and not more of them than the data set names.
void Run::log_damaged() {
  const std::vector<std::string> messages = prepared_->data->skipped->messages();
  for (; damaged_logged_ < messages.size(); ++damaged_logged_)
    context_.news.log.warning("damaged-file-skipped", {{"run", identity_.id}, {"what", messages[damaged_logged_]}});
  const std::size_t met = prepared_->data->skipped->count();  // once more in every epoch
  if (met > std::max(messages.size(), damaged_met_))
    context_.news.log.warning("damaged-files-skipped", {{"run", identity_.id}, {"times", met}});
  damaged_met_ = met;
}

void Run::reported(const std::optional<Member::Evaluation>& evaluation) {
  if (evaluation) {
    context_.news.metrics.numbers().observe(StepPart::kEvaluate,
                                            std::chrono::duration<double>(Clock::now() - evaluating_).count());
    numbers_.evaluated(*evaluation, prepared_->model.classes);
    const schema::RunStatus& status = numbers_.status();
    context_.news.metrics.numbers().accuracy = status.evaluation_accuracy;
    context_.news.metrics.numbers().accuracy_5 =
        status.evaluation_accuracy_5 > 0 ? status.evaluation_accuracy_5 : Numbers::kUnknown;
    context_.news.log.info("evaluated", {{"run", identity_.id},
                                         {"step", status.evaluation_step},
                                         {"accuracy", status.evaluation_accuracy},
                                         {"loss", status.evaluation_loss}});
    log_damaged();
  }
  numbers_.write_metrics(evaluation.has_value());
  publish(true);
}

void Run::state_digests(const std::vector<std::uint64_t>& digests) {
  numbers_.digest(Replica::combine(digests), prepared_->replica->committed_steps());
}

void Run::waited(const Waiting& waiting, Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (now - since > Standstill::kOwnSleep) return;  // this process was stopped: nobody else is to blame
  const double seconds = std::chrono::duration<double>(now - since).count();
  numbers_.waited(waiting.ranks, seconds);
  for (const Rank rank : waiting.ranks)
    context_.news.metrics.numbers().peers[view_.seat(rank)].wait_seconds +=
        seconds / static_cast<double>(waiting.ranks.size());
  if (timeline_->on()) timeline_->add(Timeline::Track::kNode, "wait", member_->step(), since, now);
}

// --- watching ---

std::uint64_t Run::step_timeout_ms() const {
  return std::max(job_.step_timeout_ms, static_cast<std::uint64_t>(10'000 * numbers_.median_step_seconds()));
}

void Run::request_stop() {
  if (!goes_on()) return;
  member_->request_stop();
  show_stopping();
}

void Run::show_stopping() {
  schema::RunStatus& status = numbers_.status();
  if (status.state == schema::RunState::kStopping) return;
  status.state = schema::RunState::kStopping;
  status.since_ms = unix_time_ms();
  publish(true);
}

// Everybody alive, nobody stuck in its own work, and still nothing comes: a frame was lost on the way.
void Run::tick() {
  if (!goes_on() || member_->failed()) return;
  if (member_->stopping()) show_stopping();
  publish(false);  // a run that stands still shows where
  const auto limit = std::chrono::milliseconds(step_timeout_ms() * 3 / 2);
  const bool stands_still = standstill_.tick(Clock::now(), context_.news.progress.count) >= limit;
  const Waiting waits = waiting();
  if (!stands_still || waits.ranks.empty()) return;
  const std::string phase = member_->reporting() ? "evaluate" : std::string(to_word(waits.phase));
  const Rank first = waits.ranks.front();
  member_->fail(member_->members().cause(
      first, phase,
      context_.self.config.node + " has waited " + std::to_string(limit.count() / 1000) + " s for " +
          member_->members().names[first] + " in " + phase + " of step " + std::to_string(numbers_.status().step) +
          ": it is alive but its frames do not come"));
}

void Run::publish(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  numbers_.refresh();
  context_.disk.store.update(numbers_.status());
}

// --- saving ---

// Reads the digests of the last state. A device that has failed no longer says them: the last known ones stay, with
// their step.
void Run::read_digests() {
  try {
    state_digests(prepared_->replica->segment_digests());
  } catch (const std::exception& error) {
    context_.news.log.warning("digest-failed", {{"run", identity_.id}, {"error", error.what()}});
  }
}

std::map<std::string, std::string> Run::metadata() const {
  const schema::RunStatus& status = numbers_.status();
  std::map<std::string, std::string> metadata{{"format", "pt"},
                                              {"run", identity_.id},
                                              {"view", std::to_string(view_.number())},
                                              {"step", std::to_string(status.digest_step)},
                                              {"digest", hex_digest(status.digest)}};
  if (!prepared_->description.empty()) metadata[kDescription] = prepared_->description;
  return metadata;
}

// Between two steps nobody writes the committed state. The copy is made here, the rest is done beside training.
void Run::write_checkpoint_if_due() {
  const auto every = std::chrono::milliseconds(job_.checkpoint_every_ms);
  if (every.count() == 0 || writes_checkpoint_ || Clock::now() - checkpointed_ < every) return;
  checkpointed_ = Clock::now();
  writes_checkpoint_ = true;
  state_digests(prepared_->replica->segment_digests());
  numbers_.flush_metrics();
  numbers_.refresh();
  RunRecord record = record_;
  record.status = numbers_.status();
  record.status.reason.clear();
  const auto advance = [&progress = context_.news.progress] { ++progress.count; };
  const StateArrays arrays = copies_ ? copy_of(*prepared_->replica, prepared_->model.segments.padded_count())
                                     : arrays_of(*prepared_->replica, advance);
  const auto write = [&context = context_, key = identity_.key, prepared = prepared_, arrays, metadata = metadata(),
                      record] {
    const std::uint64_t step = record.status.digest_step;
    const Result<Artefacts> artefacts = artefacts_of(prepared->model, arrays, metadata);
    Status written = artefacts
                         ? write_checkpoint(context.disk.store.directory(record.id), step, artefacts->at(kStateFile))
                         : Status(artefacts.error());
    if (written.ok()) written = context.disk.store.keep(record);
    context.tell.checkpointed({key, step, written});
  };
  if (copies_) return context_.disk.saver.post(write);
  context_.news.progress.phase = schema::Phase::kSave;
  write();
}

void Run::checkpointed(const CheckpointWritten& outcome) {
  writes_checkpoint_ = false;
  if (outcome.status.ok()) {
    context_.news.metrics.numbers().saved = static_cast<double>(unix_time_ms()) / 1000;
    context_.news.log.info("checkpoint", {{"run", identity_.id}, {"step", outcome.step}});
    return;
  }
  context_.news.log.warning("checkpoint-failed",
                            {{"run", identity_.id}, {"step", outcome.step}, {"error", outcome.status.error().message}});
  if (saving_) return;
  numbers_.status().reason = "the checkpoint of step " + std::to_string(outcome.step) +
                             " is not written, the one before stays: " + outcome.status.error().message;
  publish(true);
}

// --- the end ---

void Run::begin_save(schema::RunState state, const std::string& reason) {
  saving_ = true;
  schema::RunStatus& status = numbers_.status();
  status.state = state;
  status.reason = reason;
  status.since_ms = unix_time_ms();
  read_digests();
  publish(true);
  context_.news.progress.phase = schema::Phase::kSave;
  const bool traced = timeline_->on();
  timeline_->stop();
  record_.status = status;
  for (const std::string& name : record_.member_names)
    if (name != record_.node) record_.others[name] = {schema::SaveState::kUnknown, ""};
  context_.disk.saver.post([&context = context_, key = identity_.key, prepared = prepared_, timeline = timeline_,
                            metrics = numbers_.take_metrics(), traced, metadata = metadata(),
                            record = record_]() mutable {
    const std::string directory = context.disk.store.directory(record.id);
    const auto advance = [&context] { ++context.news.progress.count; };
    RunSaved outcome{key, schema::SaveState::kSaved, "", {}, nullptr};
    const auto failed = [&](const Error& error) {
      if (outcome.save == schema::SaveState::kSaved) outcome.problem = error.message;
      outcome.save = schema::SaveState::kNotSaved;
    };
    Result<Artefacts> artefacts = artefacts_of(prepared->model, arrays_of(*prepared->replica, advance), metadata);
    if (!artefacts) {
      failed(artefacts.error());
    } else {
      outcome.artefacts = std::make_shared<const Artefacts>(*std::move(artefacts));
      Result<FileMarks> marks = write_artefacts(directory, *outcome.artefacts);
      if (!marks) {
        failed(marks.error());
      } else {
        record.files = *std::move(marks);
      }
    }
    if (traced) {
      const Status written = timeline->write(directory + "/trace.json");
      if (!written) failed(written.error());
      if (const auto mark = engine::mark_of_file(directory + "/trace.json"); written && mark)
        record.files["trace.json"] = *mark;
    }
    // What is hashed is closed first. One that lacks lines gets no hash, so that whoever fetches it is told.
    if (const Status whole = metrics->close(); !whole) {
      context.news.log.warning("metrics-incomplete", {{"run", record.id}, {"what", whole.error().message}});
    } else if (const Result<engine::FileMark> mark = engine::mark_of_file(directory + "/metrics.jsonl"); mark) {
      record.files["metrics.jsonl"] = *mark;
    }
    schema::MemberStatus& own = record.own_row();
    own.state = record.status.state;
    own.save = outcome.save;
    own.problem = schema::clip_text(outcome.problem, schema::kMostProblemBytes);
    if (const Status kept = context.disk.store.keep(record); !kept) failed(kept.error());
    if (outcome.save == schema::SaveState::kSaved) delete_checkpoints(directory);
    outcome.files = record.files;
    context.tell.saved(std::move(outcome));
  });
}

schema::Ended Run::own_end(schema::SaveState save, const std::string& problem) const {
  const schema::RunStatus& status = record_.status;
  schema::Ended own;
  own.state = status.state;
  own.reason = status.reason;
  own.since_ms = status.since_ms;
  own.held_step = status.digest_step;
  own.held_digest = status.digest;
  if (own.state != schema::RunState::kFailed) {
    own.step = own.held_step;
    own.digest = own.held_digest;
  }
  own.save = save;
  own.problem = schema::clip_text(problem, schema::kMostProblemBytes);
  return own;
}

void Run::saved(const RunSaved& outcome) {
  context_.news.progress.phase = schema::Phase::kIdle;  // and waits for the others' words
  saved_ = true;
  if (outcome.save == schema::SaveState::kSaved)
    context_.news.metrics.numbers().saved = static_cast<double>(unix_time_ms()) / 1000;
  record_.files = outcome.files;
  if (outcome.save != schema::SaveState::kSaved) unsaved_ = outcome.artefacts;
}

Status Run::ended(const RunEnd& end) {
  record_end(record_, end, context_.self.names);
  schema::MemberStatus& own = record_.own_row();
  const bool anybody = std::any_of(end.members.begin(), end.members.end(),
                                   [](const auto& word) { return word && word->save == schema::SaveState::kSaved; });
  if (own.save == schema::SaveState::kNotSaved && !anybody && unsaved_) {
    own.save = schema::SaveState::kInMemory;
    context_.disk.store.hold(identity_.id, *unsaved_, prepared_,
                             Replica::bytes(prepared_->model, prepared_->replica->slot_count(), keeps_average(job_)));
  }
  context_.news.progress.phase = schema::Phase::kIdle;
  return context_.disk.store.write(record_);
}

}  // namespace tg::daemon
