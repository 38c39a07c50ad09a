#include "daemon/run/run.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <utility>

#include "daemon/membership/choose_exchange.h"
#include "daemon/run/memory_check.h"
#include "daemon/run/prepare.h"
#include "daemon/run/rebuild.h"
#include "daemon/run/sample_to_wire.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "kernels/base/check.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

// The node's limit without the unsaved states of earlier runs; 0 = the machine's free memory, which excludes them.
std::uint64_t memory_for_a_run(const RunContext& context) {
  const std::uint64_t configured = context.self.config.memory_mib << 20, held = context.storage.store.unsaved().bytes;
  return configured == 0 ? 0 : std::max<std::uint64_t>(configured, held + 1) - held;
}

std::string unsaved_note(const RunContext& context) {
  const RunStore::Unsaved held = context.storage.store.unsaved();
  return daemon::unsaved_note(held.bytes, held.runs);
}

PreparationOptions preparation_options(const RunContext& context, const RunIdentity& identity,
                                       const schema::JobSpec& job, const std::optional<SavedStart>& start) {
  return {.job = job,
          .data_dir = context.data_dir_for(job),
          .threads = context.threads_for(job),
          .node = context.self.config.node,
          .unsaved_note = unsaved_note(context),
          .memory_bytes = memory_for_a_run(context),
          .memory_dir = context.self.config.state_dir + "/data",
          .start = start,
          .log_progress =
              [&log = context.news.log, id = identity.id](const std::string& line) {
                log.info("preparing", {{"run", id}, {"progress", line}});
              },
          .show_images =
              [&progress = context.news.progress](std::size_t done, std::size_t of) {
                progress.images_done = done;
                progress.images = of;
              }};
}

LocalShare part_of(const RunContext& context, const RunIdentity& identity, const View& view,
                   const std::optional<schema::Commit>& first = {}) {
  return {.self = view.rank(context.self.config.seat()).value(),
          .weights = view.weights(),
          .global_batch = identity.global_batch,
          .first_weights = first ? weights_in(*first) : identity.first_weights};
}

// Makes the run's compute thread, which begins to prepare; its events carry the run key.
std::unique_ptr<Trainer> make_trainer(const RunContext& context, const RunIdentity& identity,
                                      const schema::JobSpec& job, const View& view,
                                      const std::optional<SavedStart>& start, std::uint64_t number,
                                      const std::shared_ptr<Timeline>& timeline, bool joins) {
  PreparationOptions options = preparation_options(context, identity, job, start);
  if (joins) options.job.initial.clear();  // the donor sends the state
  const engine::ComputeDevice& compute = context.machine.compute;
  const Trainer::Makers makers{
      [options, part = part_of(context, identity, view), &compute](const std::function<void()>& advance) {
        return prepare(options, part, compute, advance);
      },
      [options, &compute](TrainingKit& kit, const LocalShare& part, Step first, const std::function<void()>& advance) {
        return rebuild(options, kit, part, first, compute, advance);
      }};
  const Trainer::Hooks hooks{[&context, run_key = identity.run_key, number](auto result) {
                               context.hooks.on_prepared({run_key, number, std::move(result)});
                             },
                             [&context, run_key = identity.run_key](std::uint32_t of, auto result) {
                               context.hooks.on_rebuilt({run_key, of, std::move(result)});
                             },
                             [&context, run_key = identity.run_key](StepEvent&& event) {
                               context.hooks.on_step_event({run_key, std::move(event)});
                             }};
  return std::make_unique<Trainer>(Trainer::Options{.job = job, .run = identity.id}, makers, context.news.progress,
                                   context.machine.fault, timeline, hooks);
}

// Node's thread.
std::uint64_t next_object_number() {
  static std::uint64_t made = 0;
  return ++made;
}

// The members of a view that are not in the other.
std::vector<std::string> members_not_in(const View& view, const View& other, const schema::NodeList& names) {
  std::vector<std::string> members;
  for (const Seat seat : view.seats())
    if (!other.has(seat)) members.push_back(names[seat]);
  return members;
}

// The reason of a view change, for people.
std::string change_reason(const std::vector<std::string>& departed) {
  return departed.empty() ? "same members" : "without " + schema::joined(departed);
}

}  // namespace

Run::Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view,
         std::optional<SavedStart> start, bool joins)
    : context_(context),
      number_(next_object_number()),
      identity_(std::move(identity)),
      job_(std::move(job)),
      reporter_(context, identity_.id),
      checkpointer_(context, identity_.run_key, job_),
      preparation_(context, identity_.run_key, job_, identity_.global_batch,
                   joins ? std::vector<Seat>() : view.seats()),
      start_(std::move(start)),
      trainer_(make_trainer(context, identity_, job_, view, start_, number_, timeline_, joins)),
      view_(std::in_place, parts(), std::move(view)) {}

RunView::Parts Run::parts() {
  return {.context = context_,
          .identity = identity_,
          .job = job_,
          .trainer = *trainer_,
          .reporter = reporter_,
          .checkpointer = checkpointer_,
          .timeline = timeline_};
}

Run::~Run() = default;

// --- before it begins ---

void Run::on_prepared(Result<std::shared_ptr<const PreparedView>> result) {
  if (result.ok()) {
    prepared_view_ = result.value();
    prepared_ = prepared_view_->run;
    job_.steps = prepared_->steps;
    view_->on_prepared(prepared_, evaluates_first());
  }
  preparation_.on_prepared(std::move(result));
}

engine::ModelOptions Run::model() const {
  TG_CHECK(prepared_ != nullptr);
  return model_options(job_, prepared_->model);
}

schema::StartReply Run::facts(const schema::Commit& choice) const {
  TG_CHECK(prepared_ != nullptr);
  const engine::SegmentTable& segments = prepared_->model.segments;
  const Layouts layouts = layouts_of(job_, segments, view_->view().size(), choice);
  schema::StartReply reply;
  reply.run_id = identity_.id;
  reply.parameters = segments.parameter_count();
  reply.members = view_->view().size();
  reply.global_batch = identity_.global_batch;
  reply.shares = view_->shares();
  reply.local_batch = view_->own_samples();
  reply.exchange = to_word(layouts.layout.exchange);
  reply.coding = to_word(layouts.layout.coding);
  reply.compute_seconds =
      prepared_view_->step_seconds / prepared_view_->local_batch * static_cast<double>(reply.local_batch);
  reply.link_mbps = preparation_.link_mbps();
  reply.memory_bytes = member_bytes(job_, prepared_->model, layouts, workers_for(context_.threads_for(job_))) +
                       prepared_view_->activation_bytes - prepared_view_->device_bytes;
  reply.device_bytes = prepared_view_->device_bytes + prepared_view_->device_reserve;
  reply.disk_bytes = disk_bytes(job_, prepared_->model);
  reply.from_step = prepared_->replica->committed_rounds().value();
  reply.steps = prepared_->steps;
  reply.training_samples = prepared_->data->train.count();
  reply.data_read = prepared_->read.summary;
  for (const std::string& warning : prepared_->read.warnings) {
    const std::string line = schema::clip_text(warning, schema::kMaxSentenceBytes) + "\n";
    if (reply.data_warnings.size() + line.size() <= schema::kMaxWarningsBytes) reply.data_warnings += line;
  }
  return reply;
}

Status Run::show_data(schema::StartReply& reply) const {
  TG_CHECK(prepared_ != nullptr);
  if (replays(job_)) return {};
  try {
    for (const engine::ShownSample& sample :
         engine::shown_samples(*prepared_->data, prepared_->recipe, job_.seed, schema::kMaxPictures))
      reply.pictures.push_back(to_wire(sample, prepared_->data->classes[sample.label]));
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, context_.self.config.node + ": " + error.what()};
  }
  return {};
}

// --- the beginning ---

// copies: whether there is memory to copy the state for a checkpoint; if not, training pauses for it.
Status Run::check_memory_of(const schema::StartReply& facts, bool& copies) const {
  const engine::Model& model = prepared_->model;
  const std::uint64_t held = prepared_->replica->bytes() + model.segments.padded_count() * sizeof(float) +
                             prepared_view_->activation_bytes - prepared_view_->device_bytes;  // all of it is allocated
  const std::uint64_t allowed = memory_for_a_run(context_);
  copies = check_memory(facts.memory_bytes, held, allowed).ok();
  if (copies) return {};
  const Status fits = check_memory(facts.memory_bytes - checkpoint_bytes(job_, model), held, allowed);
  if (fits.ok()) return {};
  return Error{fits.error().kind, fits.error().message + " (exchange = " + facts.exchange +
                                      ", coding = " + facts.coding + " was chosen)" + unsaved_note(context_)};
}

RunBeginning Run::beginning(const schema::StartReply& facts) const {
  return {job_, *prepared_, identity_.global_batch, facts.exchange, facts.coding};
}

schema::RunStatus Run::first_status(const schema::StartReply& facts) const {
  schema::RunStatus status;
  fill_first_status(beginning(facts), status);
  status.id = identity_.id;
  status.started_ms = status.since_ms;
  status.from_step = facts.from_step;
  status.initial_digest = prepared_->initial_digest;
  status.lineage = identity_.lineage();
  status.view = view_->view().number();
  status.view_step = facts.from_step;
  status.view_since_ms = status.since_ms;
  status.data_warnings = facts.data_warnings;
  if (!start_) return status;
  status.digest = start_->state.digest;  // a joiner has drawn parameters of its own before
  const schema::RunStatus& before = start_->record->status;
  status.started_ms = before.started_ms;
  status.initial_digest = before.initial_digest;
  status.counters() = start_->counters;
  if (start_->record->key != identity_.run_key) return status;
  // This node joins.
  status.from_step = before.from_step;
  status.departed = before.departed;
  std::erase_if(status.departed, [this](const auto& one) { return one.node == context_.self.config.node; });
  return status;
}

RunRecord Run::first_record(const schema::StartReply& facts) const {
  const RunContext::Self& self = context_.self;
  RunRecord record = daemon::first_record(
      beginning(facts), identity_.spec, reporter_.status(),
      member_record(self.config.node, *prepared_, *prepared_view_, context_.machine.kernels, context_.machine.compute),
      view_->view().names(), view_->member_names(), view_->view().weights());
  record.key = identity_.run_key;
  record.view = view_->view().number();
  record.builds = {{self.config.node, prepared_view_->engine_build}};
  if (start_) record.from = start_->state;
  record.unasked = identity_.resume && identity_.resume->unasked;
  record.build = self.build;
  return record;
}

Status Run::begin(const schema::Commit& choice) {
  TG_CHECK(prepared_ != nullptr && !begun());
  const bool shares_changed = view_->settle(View(first_view(choice), context_.self.names));
  if (Status entered = record_beginning(choice); !entered.ok()) return entered;
  if (shares_changed) {
    choice_ = choice;
    trainer_->rebuild(view_->view().number(), part_of(context_, identity_, view_->view(), choice_),
                      Step(prepared_->replica->committed_rounds().value()));
    return {};
  }
  Status begun = view_->begin(choice);
  if (view_->begun()) choice_ = choice;
  return begun;
}

// Records and reports the beginning on this node.
Status Run::record_beginning(const schema::Commit& choice) {
  const schema::StartReply facts = this->facts(choice);
  bool copies = true;
  if (Status fits = check_memory_of(facts, copies); !fits.ok()) return fits;
  if (job_.trace) timeline_->start(context_.self.config.node, view_->view().number_of(context_.self.config.seat()));
  reporter_.begin_view(view_->numbers());
  reporter_.begin(first_status(facts), prepared_, static_cast<double>(job_.checkpoint_every_ms) / 1000);
  if (Status written = checkpointer_.begin(first_record(facts), prepared_, copies); !written.ok()) return written;
  // If the first state is still to be evaluated, its row is written with the evaluation.
  if (Status opened = reporter_.open_metrics(context_.storage.store.directory(identity_.id), start_.has_value(),
                                             facts.from_step - (evaluates_first() ? 1 : 0));
      !opened.ok())
    return opened;
  if (start_)
    checkpointer_.write_checkpoint(checkpointer_.state_id(start_->state.step, start_->state.digest),
                                   reporter_.refreshed(), reporter_.metrics());
  log_beginning(facts);
  if (job_.checkpoint_every_ms > 0 && !copies) {
    reporter_.set_note(context_.self.config.node +
                       " has no memory to copy the state: training pauses while a checkpoint is written");
    context_.news.log.warning("checkpoint-without-copy", {{"run", identity_.id}, {"what", reporter_.status().reason}});
  }
  return {};
}

// Whether the state of a resume is evaluated first: a crash or shutdown may have come between its commit and its
// evaluation, perhaps on some members only. The answer depends on the step alone, so that all members agree.
bool Run::evaluates_first() const { return start_ && !start_->from_the_beginning && is_evaluated(start_->state.step); }

// Whether the schedule has an evaluation at this step; step 0 has none.
bool Run::is_evaluated(std::uint64_t step) const {
  if (step == 0 || prepared_->data->test.labels.empty()) return false;
  return step == job_.steps || (job_.evaluate_every > 0 && step % job_.evaluate_every == 0);
}

void Run::log_beginning(const schema::StartReply& facts) const {
  Log& log = context_.news.log;
  log.info("run-started", {{"run", identity_.id},
                           {"model", to_word(job_.model)},
                           {"members", view_->view().size()},
                           {"seed", job_.seed},
                           {"exchange", facts.exchange},
                           {"coding", facts.coding},
                           {"link-mbps", preparation_.link_mbps()},
                           {"kernels", context_.machine.kernels.name},
                           {"engine", prepared_view_->engine_build},
                           {"device", context_.machine.compute.name()},
                           {"local-batch", facts.local_batch},
                           {"memory-bytes", facts.memory_bytes},
                           {"disk-bytes", facts.disk_bytes},
                           {"activation-bytes", prepared_view_->activation_bytes},
                           {"device-bytes", prepared_view_->device_bytes},
                           {"initial-digest", hex_digest(prepared_->initial_digest)}});
  if (!facts.data_read.empty()) log.info("data", {{"run", identity_.id}, {"read", facts.data_read}});
  for (const std::string& warning : prepared_->read.warnings)
    log.warning("data", {{"run", identity_.id}, {"what", warning}});
  for (const std::string& note : prepared_->initial_notes) log.info("initial", {{"run", identity_.id}, {"what", note}});
  if (const std::string uneven = schema::uneven_shares(view_->shares()); !uneven.empty())
    log.info("batch-split", {{"run", identity_.id}, {"samples", uneven}});
}

// --- during the run ---

void Run::request_stop() {
  if (!is_active()) return;
  view_->member().request_stop();
  reporter_.set_state(schema::RunState::kStopping, reporter_.status().reason);
}

void Run::tick() {
  if (!is_active() || view_->member().failed()) return;
  if (view_->member().stopping() && reporter_.status().state == schema::RunState::kRunning)
    reporter_.set_state(schema::RunState::kStopping, reporter_.status().reason);
  reporter_.publish(false);  // also during a stall
  if (!view_->member().is_sealed()) view_->tick();
}

void Run::on_checkpoint_written(const CheckpointWritten& outcome) {
  const std::optional<std::string> problem = checkpointer_.on_checkpoint_written(outcome);
  if (checkpointer_.is_saving()) return;
  if (problem || checkpoint_failed_) reporter_.set_note(problem.value_or(""));
  checkpoint_failed_ = problem.has_value();
}

// --- a view change ---

SealReport Run::seal() {
  TG_CHECK(is_active());
  Member& member = view_->member();
  if (!member.is_sealed()) {
    if (unfit_.empty()) unfit_ = view_->stall_reason();
    member.seal();
    if (view_->begun()) {  // else an engine is being made, which the next view can use
      trainer_->abandon();
      context_.news.progress.phase = schema::Phase::kIdle;
    }
  }
  if (unfit_.empty()) unfit_ = member.unfit();
  return {.has_state = true,
          .step = prepared_->replica->committed_rounds().value(),
          .unfit = unfit_,
          .can_undo = member.can_go_back()};
}

// The order matters: first nothing writes the state any more; then it is taken to the first state of the next view, and
// recorded as the old view's last; then the new view takes over.
Status Run::change_view(View next, Round start, const std::string& why) {
  TG_CHECK(is_active() && view_->member().is_sealed(), start.value());
  snapshot_source_.reset();
  view_->stop_helpers();
  trainer_->abandon();
  Member& before = view_->member();
  const bool stopping = before.stopping();
  if (before.quiesced()) reporter_.set_note("");
  const bool can_undo = prepared_->replica->committed_rounds() > start;
  before.install(start);
  if (can_undo) reporter_.drop_unconfirmed();
  if (unfit_.empty()) unfit_ = before.unfit();
  const std::uint64_t digest = read_digest().value_or(reporter_.status().digest);
  const bool report_follows = is_evaluated(start.value()) || start.value() == job_.steps;
  if (!report_follows) reporter_.write_without_report();
  const schema::StateId from = checkpointer_.state_id(start.value(), digest);
  const std::vector<std::string> departed = members_not_in(view_->view(), next, context_.self.names);
  const std::vector<std::string> joined = members_not_in(next, view_->view(), context_.self.names);
  const std::string reason = why.empty() ? change_reason(departed) : why;
  view_.emplace(parts(), std::move(next));
  reporter_.begin_view(view_->numbers());
  reporter_.on_view_changed(view_->view().number(), start.value(), {departed, joined}, reason);
  view_->on_prepared(prepared_, is_evaluated(start.value()));
  checkpointer_.on_view_changed(
      reporter_.refreshed(),
      {view_->view().number(), view_->view().names(), view_->member_names(), view_->view().weights(), from},
      "CHANGED: " + reason);
  // A joiner keeps the state that it received: so all have a state in common.
  if (!joined.empty()) checkpointer_.write_checkpoint(from, reporter_.refreshed(), reporter_.metrics());
  if (stopping) view_->member().request_stop();
  reporter_.publish(true);
  if (!unfit_.empty()) return mark_unfit(Error{ErrorKind::kRunFailed, unfit_});
  trainer_->rebuild(view_->view().number(), part_of(context_, identity_, view_->view(), choice_), Step(start.value()));
  return {};
}

// --- a join ---

void Run::request_quiesce() {
  if (is_active()) view_->member().request_quiesce();
}

void Run::note_join(const std::string& what) {
  if (!is_active()) return;
  ++context_.news.progress.count;
  if (quiesced()) reporter_.set_note(what);
}

void Run::release() {
  if (!is_active()) return;
  snapshot_source_.reset();
  if (quiesced()) reporter_.set_note("");
  view_->member().release();
}

void Run::read_history() {
  context_.storage.saver.post(
      [&context = context_, metrics = reporter_.metrics(), run_key = identity_.run_key, id = identity_.id] {
        metrics->flush();
        context.hooks.on_history_read({run_key, context.storage.store.history(id), metrics->lines()});
      });
}

schema::SnapshotOffer Run::begin_snapshot(const HistoryRead& history) {
  SnapshotSource::Past past{record_to_json(checkpointer_.record_with(reporter_.refreshed())), history.views,
                            history.metrics.file_bytes + history.metrics.waiting.size()};
  past.read_metrics = [&store = context_.storage.store, id = identity_.id, lines = history.metrics](
                          std::uint64_t at, std::span<std::byte> to) -> Status {
    const std::size_t in_file = at < lines.file_bytes ? std::min<std::uint64_t>(to.size(), lines.file_bytes - at) : 0;
    if (in_file > 0) {
      const Result<schema::SliceReply> slice = store.read_slice(id, kMetricsFile, at, in_file);
      if (!slice.ok()) return slice.error();
      if (slice->data.size() != in_file) return Error{ErrorKind::kIo, std::string(kMetricsFile) + " became shorter"};
      std::memcpy(to.data(), slice->data.data(), in_file);
    }
    if (in_file < to.size())
      std::memcpy(to.data() + in_file, lines.waiting.data() + (at + in_file - lines.file_bytes), to.size() - in_file);
    return {};
  };
  snapshot_source_ = std::make_unique<SnapshotSource>(std::move(past), *prepared_->replica);
  return {checkpointer_.state_id(reporter_.status().digest_step, reporter_.status().digest), snapshot_source_->parts()};
}

void Run::send_snapshot_chunks(Seat to, const schema::SnapshotRequest& request) {
  if (!snapshot_source_ || !quiesced()) return;
  ++context_.news.progress.count;
  const schema::FrameHeader header{identity_.run_key, view_->view().number(), 0};
  const Status sent = snapshot_source_->want(request, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    context_.network.mesh.send({to},
                               schema::encode_frame(header, schema::SnapshotChunk{at, bytes}, context_.network.pool));
  });
  if (!sent.ok()) context_.news.log.warning("snapshot-failed", {{"run", identity_.id}, {"why", sent.error().message}});
}

Status Run::receive_snapshot(Seat from, std::uint32_t view, const schema::SnapshotOffer& offer) {
  TG_CHECK(prepared_ != nullptr && !begun());
  snapshot_sink_.reset();
  const std::string metrics = context_.storage.store.directory(identity_.id) + "/" + kMetricsFile;
  received_metrics_ = std::make_unique<engine::AtomicFile>(metrics);
  std::error_code unknown;  // then the maximum
  const SnapshotBounds bounds{identity_.lineage(), job_.steps, prepared_->model.segments.size(),
                              std::filesystem::space(context_.self.config.state_dir, unknown).available};
  Result<std::unique_ptr<SnapshotSink>> sink = SnapshotSink::of(
      offer, bounds, *prepared_->replica, [&file = *received_metrics_](std::span<const std::byte> bytes) {
        return file.write(bytes.data(), bytes.size());
      });
  if (!sink.ok()) return sink.error();
  if (Status opened = received_metrics_->open(); !opened.ok()) return opened;
  snapshot_sink_ = *std::move(sink);
  donor_ = from;
  donor_view_ = view;
  return {};
}

Status Run::on_snapshot_chunk(Seat from, const schema::SnapshotChunk& chunk, std::uint64_t now_ms) {
  if (!snapshot_sink_ || from != donor_ || begun()) return {};
  ++context_.news.progress.count;
  if (Status taken = snapshot_sink_->take(chunk, now_ms); !taken.ok()) return taken;
  request_chunks(now_ms);
  return {};
}

void Run::request_chunks(std::uint64_t now_ms) {
  if (!snapshot_sink_ || begun()) return;
  if (const std::optional<schema::SnapshotRequest> request = snapshot_sink_->due(now_ms))
    context_.network.mesh.send(
        {donor_}, schema::encode_frame({identity_.run_key, donor_view_, 0}, *request, context_.network.pool));
}

Status Run::check_snapshot() const {
  TG_CHECK(has_snapshot());
  const std::uint64_t digest = Replica::combine(prepared_->replica->segment_digests());
  if (digest == snapshot_sink_->state().digest) return {};
  return Error{ErrorKind::kCorrupt, "the received state of step " + std::to_string(snapshot_sink_->state().step) +
                                        " has digest " + hex_digest(digest) + ", and the members have " +
                                        hex_digest(snapshot_sink_->state().digest)};
}

Status Run::join(View view, const schema::Commit& choice, const std::string& why) {
  TG_CHECK(has_snapshot() && !begun());
  const Result<RunRecord> record = record_from_json(snapshot_sink_->record());
  if (!record.ok()) return record.error();
  if (record->id != identity_.id || record->key != identity_.run_key)
    return Error{ErrorKind::kCorrupt, "the state came with another run's record; do all nodes run the same build?"};
  SavedStart start;
  start.state = snapshot_sink_->state();
  start.directory = context_.storage.store.directory(identity_.id);
  start.from_the_beginning = start.state.step == 0;
  start.counters = record->status;
  start.record = std::make_shared<const RunRecord>(*record);
  start_ = std::move(start);
  if (Status kept = received_metrics_->commit(); !kept.ok()) return kept;
  view_.emplace(parts(), std::move(view));
  view_->on_prepared(prepared_, is_evaluated(start_->state.step));
  ViewInterval before = interval_of(*record);
  before.ended = schema::clip_text("CHANGED: " + why, schema::kMaxReasonBytes);
  checkpointer_.set_history(snapshot_sink_->views(), std::move(before));
  if (Status entered = record_beginning(choice); !entered.ok()) return entered;
  choice_ = choice;
  snapshot_sink_.reset();
  received_metrics_.reset();
  trainer_->rebuild(view_->view().number(), part_of(context_, identity_, view_->view(), choice_),
                    Step(start_->state.step));
  return {};
}

void Run::leave(Round start) {
  if (!is_active()) return;
  seal();
  view_->stop_helpers();
  const Round committed = prepared_->replica->committed_rounds();
  if (committed != start && !(committed == start.next() && view_->member().can_go_back())) return;
  view_->member().install(start);
  if (committed != start) reporter_.drop_unconfirmed();
}

void Run::pause(const std::string& why) {
  if (!is_active()) return;
  const bool paused = reporter_.status().state == schema::RunState::kPaused;
  if (!why.empty()) return paused ? reporter_.set_note(why) : reporter_.set_state(schema::RunState::kPaused, why);
  if (!paused) return;
  reporter_.set_state(view_->member().stopping() ? schema::RunState::kStopping : schema::RunState::kRunning, "");
}

Status Run::on_rebuilt(std::uint32_t view, Result<std::shared_ptr<const PreparedView>> result) {
  if (!is_active() || view != view_->view().number() || view_->member().is_sealed()) return {};
  if (!result.ok()) return mark_unfit(result.error());
  prepared_view_ = *std::move(result);
  bool copies = true;
  if (const Status fits = check_memory_of(facts(*choice_), copies); !fits.ok())
    return mark_unfit(Error{fits.error().kind, context_.self.config.node + ": " + fits.error().message});
  checkpointer_.on_rebuilt(*prepared_view_, copies);
  if (const Status begun = view_->begin(*choice_); !begun.ok()) return mark_unfit(begun.error());
  return {};
}

Status Run::mark_unfit(const Error& error) {
  unfit_ = error.message;
  return error;
}

// --- the end ---

void Run::begin_save(schema::RunState state, const std::string& reason) {
  const Round committed = prepared_->replica->committed_rounds();
  view_->member().rest();
  // Only a resume needs it, and a COMPLETED run is never resumed.
  const bool undone = state != schema::RunState::kCompleted && prepared_->replica->committed_rounds() < committed;
  if (const std::optional<std::uint64_t> digest = read_digest())
    reporter_.set_digest(*digest, prepared_->replica->confirmed_rounds().value());
  reporter_.set_state(state, reason);
  const std::optional<schema::RunStatus> ahead = undone ? reporter_.take_unconfirmed() : std::nullopt;
  checkpointer_.begin_save(reporter_.refreshed(), ahead, reporter_.take_metrics(), timeline_);
}

std::optional<std::uint64_t> Run::read_digest() const {
  try {
    return Replica::combine(prepared_->replica->segment_digests());
  } catch (const std::exception& error) {
    context_.news.log.warning("digest-failed", {{"run", identity_.id}, {"error", error.what()}});
    return std::nullopt;
  }
}

}  // namespace tg::daemon
