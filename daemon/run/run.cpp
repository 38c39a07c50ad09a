#include "daemon/run/run.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <utility>

#include "daemon/membership/choose_exchange.h"
#include "daemon/run/fitting.h"
#include "daemon/run/memory_check.h"
#include "daemon/run/preparation.h"
#include "daemon/run/sample_to_wire.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "kernels/base/check.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

// Unsaved states of earlier runs count; where the machine is asked what is left, they are gone from it already.
std::uint64_t memory_for_a_run(const RunContext& context) {
  const std::uint64_t configured = context.self.config.memory_mib << 20, held = context.disk.store.unsaved().bytes;
  return configured == 0 ? 0 : std::max<std::uint64_t>(configured, held + 1) - held;
}

std::string unsaved_note(const RunContext& context) {
  const RunStore::Unsaved held = context.disk.store.unsaved();
  return daemon::unsaved_note(held.bytes, held.runs);
}

PreparationOptions preparation(const RunContext& context, const RunIdentity& identity, const schema::JobSpec& job,
                               const std::optional<SavedStart>& start) {
  return {.job = job,
          .data_dir = context.data_dir_for(job),
          .threads = context.threads_for(job),
          .node = context.self.config.node,
          .unsaved_note = unsaved_note(context),
          .memory_bytes = memory_for_a_run(context),
          .memory_dir = context.self.config.state_dir + "/data",
          .start = start,
          .say =
              [&log = context.news.log, id = identity.id](const std::string& line) {
                log.info("preparing", {{"run", id}, {"progress", line}});
              },
          .images =
              [&progress = context.news.progress](std::size_t done, std::size_t of) {
                progress.images_done = done;
                progress.images = of;
              }};
}

ViewPart part_of(const RunContext& context, const RunIdentity& identity, const View& view) {
  return {.self = view.rank(context.self.config.seat()).value(),
          .weights = view.weights(),
          .global_batch = identity.global_batch};
}

// The compute thread of the run, which prepares at once; its reports are events of this run.
std::unique_ptr<Trainer> make_trainer(const RunContext& context, const RunIdentity& identity,
                                      const schema::JobSpec& job, const View& view,
                                      const std::optional<SavedStart>& start, std::uint64_t number,
                                      const std::shared_ptr<Timeline>& timeline, bool joins) {
  PreparationOptions options = preparation(context, identity, job, start);
  if (joins) options.job.initial.clear();  // it is given the state
  const engine::ComputeDevice& compute = context.machine.compute;
  const Trainer::Makers makers{
      [options, part = part_of(context, identity, view), &compute](const std::function<void()>& advance) {
        return prepare(options, part, compute, advance);
      },
      [options, &compute](TrainingKit& kit, const ViewPart& part, Step first, const std::function<void()>& advance) {
        return refit(options, kit, part, first, compute, advance);
      }};
  const Trainer::Hooks hooks{[&context, key = identity.run_key, number](auto result) {
                               context.tell.prepared({key, number, std::move(result)});
                             },
                             [&context, key = identity.run_key](std::uint32_t of, auto result) {
                               context.tell.fitted({key, of, std::move(result)});
                             },
                             [&context, key = identity.run_key](StepEvent&& event) {
                               context.tell.happened({key, std::move(event)});
                             }};
  return std::make_unique<Trainer>(Trainer::Options{.job = job, .run = identity.id}, makers, context.news.progress,
                                   context.machine.fault, timeline, hooks);
}

// On the node's thread.
std::uint64_t next_number() {
  static std::uint64_t made = 0;
  return ++made;
}

// Members of a view that are none of the other.
std::vector<std::string> only_in(const View& view, const View& other, const Per<Seat, std::string>& names) {
  std::vector<std::string> members;
  for (const Seat seat : view.seats())
    if (!other.has(seat)) members.push_back(names[seat]);
  return members;
}

// What people read of the end of a view.
std::string difference(const std::vector<std::string>& left) {
  return left.empty() ? "the same members go on" : "without " + schema::joined(left);
}

}  // namespace

Run::Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view,
         std::optional<SavedStart> start, bool joins)
    : context_(context),
      number_(next_number()),
      identity_(std::move(identity)),
      job_(std::move(job)),
      journal_(context, identity_.id),
      keeper_(context, identity_.run_key, job_),
      candidate_(context, identity_.run_key, job_, identity_.global_batch, joins ? std::vector<Seat>() : view.seats()),
      start_(std::move(start)),
      trainer_(make_trainer(context, identity_, job_, view, start_, number_, timeline_, joins)),
      view_(std::in_place, parts(), std::move(view)) {}

RunView::Parts Run::parts() {
  return {.context = context_,
          .identity = identity_,
          .job = job_,
          .trainer = *trainer_,
          .journal = journal_,
          .keeper = keeper_,
          .timeline = timeline_};
}

Run::~Run() = default;

// --- before it begins ---

void Run::prepared(Result<std::shared_ptr<const PreparedView>> result) {
  if (result.ok()) {
    fitted_ = result.value();
    prepared_ = fitted_->run;
    job_.steps = prepared_->steps;
    view_->prepared(prepared_, evaluates_first());
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
  reply.compute_seconds = fitted_->step_seconds / fitted_->local_batch * static_cast<double>(reply.local_batch);
  reply.link_mbps = candidate_.link_mbps();
  reply.memory_bytes = member_bytes(job_, prepared_->model, layouts, workers_for(context_.threads_for(job_))) +
                       fitted_->activation_bytes - fitted_->device_bytes;
  reply.device_bytes = fitted_->device_bytes + fitted_->device_reserve;
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

// Without room for the copy that checkpoints are written from, training waits for them.
Status Run::check_memory_of(const schema::StartReply& facts, bool& copies) const {
  const engine::Model& model = prepared_->model;
  const std::uint64_t held = prepared_->replica->bytes() + model.segments.padded_count() * sizeof(float) +
                             fitted_->activation_bytes - fitted_->device_bytes;  // there it has been taken already
  const std::uint64_t allowed = memory_for_a_run(context_);
  copies = check_memory(facts.memory_bytes, held, allowed).ok();
  if (copies) return {};
  const Status fits = check_memory(facts.memory_bytes - checkpoint_bytes(job_, model), held, allowed);
  if (fits.ok()) return {};
  return Error{fits.error().kind, fits.error().message + " (exchange = " + facts.exchange +
                                      ", coding = " + facts.coding + " was chosen)" + unsaved_note(context_)};
}

Beginning Run::beginning(const schema::StartReply& facts) const {
  return {job_, *prepared_, identity_.global_batch, facts.exchange, facts.coding};
}

schema::RunStatus Run::first_status(const schema::StartReply& facts) const {
  schema::RunStatus status;
  show_beginning(beginning(facts), status);
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
  const schema::RunStatus& before = start_->record->status;
  status.started_ms = before.started_ms;
  status.initial_digest = before.initial_digest;
  status.counters() = start_->counters;
  if (start_->record->key != identity_.run_key) return status;
  // It joins.
  status.from_step = before.from_step;
  status.departed = before.departed;
  std::erase_if(status.departed, [this](const auto& one) { return one.node == context_.self.config.node; });
  return status;
}

RunRecord Run::first_record(const schema::StartReply& facts) const {
  const RunContext::Self& self = context_.self;
  RunRecord record = daemon::first_record(
      beginning(facts), identity_.spec, journal_.status(),
      member_record(self.config.node, *prepared_, *fitted_, context_.machine.kernels, context_.machine.compute),
      {self.names.begin(), self.names.end()}, view_->member_names(), view_->view().weights());
  record.key = identity_.run_key;
  record.view = view_->view().number();
  record.builds = {{self.config.node, fitted_->engine_build}};
  if (start_) record.from = start_->state;
  record.build = self.build;
  return record;
}

Status Run::begin(const schema::Commit& choice) {
  TG_CHECK(prepared_ != nullptr && !begun());
  const bool other_shares = view_->settle(View(View::kFirst, choice.members));
  if (Status entered = enter(choice); !entered.ok()) return entered;
  if (other_shares) {
    choice_ = choice;
    trainer_->refit(view_->view().number(), part_of(context_, identity_, view_->view()),
                    Step(prepared_->replica->committed_rounds().value()));
    return {};
  }
  Status begun = view_->begin(choice);
  if (view_->begun()) choice_ = choice;
  return begun;
}

// What is recorded and told of the beginning on this node.
Status Run::enter(const schema::Commit& choice) {
  const schema::StartReply facts = this->facts(choice);
  bool copies = true;
  if (Status fits = check_memory_of(facts, copies); !fits.ok()) return fits;
  if (job_.trace) timeline_->start(context_.self.config.node, context_.self.config.seat().index());
  journal_.enter(view_->numbers());
  journal_.begin(first_status(facts), prepared_, static_cast<double>(job_.checkpoint_every_ms) / 1000);
  if (Status written = keeper_.begin(first_record(facts), prepared_, copies); !written.ok()) return written;
  // The line of an evaluation that is still due is written with it.
  if (Status opened = journal_.open_metrics(context_.disk.store.directory(identity_.id), start_.has_value(),
                                            facts.from_step - (evaluates_first() ? 1 : 0));
      !opened.ok())
    return opened;
  if (start_)
    keeper_.write_checkpoint(keeper_.name_of(start_->state.step, start_->state.digest), journal_.refreshed(),
                             journal_.metrics());
  log_beginning(facts);
  if (job_.checkpoint_every_ms > 0 && !copies) {
    journal_.note(context_.self.config.node +
                  " has no memory for a copy: training waits while a checkpoint is written");
    context_.news.log.warning("checkpoint-without-copy", {{"run", identity_.id}, {"what", journal_.status().reason}});
  }
  return {};
}

// Of the state that it is resumed from: a crash, or a shutdown, may have come between its commit and its evaluation. Of
// some members alone, perhaps: so that all say the same, each asks only which step it is.
bool Run::evaluates_first() const { return start_ && !start_->from_the_beginning && is_evaluated(start_->state.step); }

// By the schedule: nobody evaluates what has learned nothing.
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
                           {"link-mbps", candidate_.link_mbps()},
                           {"kernels", context_.machine.kernels.name},
                           {"engine", fitted_->engine_build},
                           {"device", context_.machine.compute.name()},
                           {"local-batch", facts.local_batch},
                           {"memory-bytes", facts.memory_bytes},
                           {"disk-bytes", facts.disk_bytes},
                           {"activation-bytes", fitted_->activation_bytes},
                           {"device-bytes", fitted_->device_bytes},
                           {"initial-digest", hex_digest(prepared_->initial_digest)}});
  if (!facts.data_read.empty()) log.info("data", {{"run", identity_.id}, {"read", facts.data_read}});
  for (const std::string& warning : prepared_->read.warnings)
    log.warning("data", {{"run", identity_.id}, {"what", warning}});
  for (const std::string& note : prepared_->initial_notes) log.info("initial", {{"run", identity_.id}, {"what", note}});
  if (const std::string uneven = schema::uneven_shares(view_->shares()); !uneven.empty())
    log.info("batch-split", {{"run", identity_.id}, {"samples", uneven}});
}

// --- while it goes on ---

void Run::request_stop() {
  if (!goes_on()) return;
  view_->member().request_stop();
  journal_.state(schema::RunState::kStopping, journal_.status().reason);
}

void Run::tick() {
  if (!goes_on() || view_->member().failed()) return;
  if (view_->member().stopping() && journal_.status().state == schema::RunState::kRunning)
    journal_.state(schema::RunState::kStopping, journal_.status().reason);
  journal_.publish(false);  // a run that stands still shows where
  if (!view_->member().frozen()) view_->tick();
}

void Run::checkpointed(const CheckpointWritten& outcome) {
  const std::optional<std::string> problem = keeper_.checkpointed(outcome);
  if (keeper_.saving()) return;
  if (problem || lacks_checkpoint_) journal_.note(problem.value_or(""));
  lacks_checkpoint_ = problem.has_value();
}

// --- a change of its members ---

FreezeReport Run::freeze() {
  TG_CHECK(goes_on());
  Member& member = view_->member();
  if (!member.frozen()) {
    if (unfit_.empty()) unfit_ = view_->stuck();
    member.freeze();
    if (view_->begun()) {  // else an engine is being made, which is of use to the next view too
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

// In this order: nobody writes the state any more; it goes to where the next view begins, which is told as the old
// view's; the new view takes over.
Status Run::change_view(View next, Round start, const std::string& why) {
  TG_CHECK(goes_on() && view_->member().frozen(), start.value());
  snapshot_source_.reset();
  view_->end_helpers();
  trainer_->abandon();
  Member& before = view_->member();
  const bool stops = before.stopping();
  if (before.quiesced()) journal_.note("");
  const bool can_undo = prepared_->replica->committed_rounds() > start;
  before.install(start);
  if (can_undo) journal_.drop_unconfirmed();
  if (unfit_.empty()) unfit_ = before.unfit();
  read_digests();
  const bool reports = is_evaluated(start.value()) || start.value() == job_.steps;
  if (!reports) journal_.write_without_report();
  const schema::StateId from = keeper_.name_of(start.value(), journal_.status().digest);
  const std::vector<std::string> left = only_in(view_->view(), next, context_.self.names);
  const std::vector<std::string> joined = only_in(next, view_->view(), context_.self.names);
  const std::string words = why.empty() ? difference(left) : why;
  view_.emplace(parts(), std::move(next));
  journal_.enter(view_->numbers());
  journal_.change_view(view_->view().number(), start.value(), {left, joined}, words);
  view_->prepared(prepared_, is_evaluated(start.value()));
  keeper_.change_view(journal_.refreshed(),
                      {view_->view().number(), view_->member_names(), view_->view().weights(), from},
                      "CHANGED: " + words);
  // A newcomer keeps what it was fed: so all have a state in common.
  if (!joined.empty()) keeper_.write_checkpoint(from, journal_.refreshed(), journal_.metrics());
  if (stops) view_->member().request_stop();
  journal_.publish(true);
  if (!unfit_.empty()) return unfit(Error{ErrorKind::kRunFailed, unfit_});
  trainer_->refit(view_->view().number(), part_of(context_, identity_, view_->view()), Step(start.value()));
  return {};
}

// --- a newcomer ---

void Run::request_quiesce() {
  if (goes_on()) view_->member().request_quiesce();
}

void Run::note_join(const std::string& what) {
  if (!goes_on()) return;
  ++context_.news.progress.count;
  if (quiesced()) journal_.note(what);
}

void Run::release() {
  if (!goes_on()) return;
  snapshot_source_.reset();
  if (quiesced()) journal_.note("");
  view_->member().release();
}

void Run::read_past() {
  journal_.metrics()->flush();
  context_.disk.saver.post([&context = context_, key = identity_.run_key, id = identity_.id] {
    std::ifstream file(context.disk.store.directory(id) + "/" + kViewsFile, std::ios::binary);  // none: no view before
    context.tell.past_read({key, std::string(std::istreambuf_iterator<char>(file), {})});
  });
}

schema::SnapshotOffer Run::begin_snapshot(std::string views) {
  RunStore& store = context_.disk.store;
  const Result<schema::SliceReply> metrics = store.read_slice(identity_.id, kMetricsFile, 0, 0);
  SnapshotSource::Past past{record_to_json(keeper_.record_with(journal_.refreshed())), std::move(views),
                            metrics.ok() ? metrics->total_bytes : 0};
  past.read_metrics = [&store, id = identity_.id](std::uint64_t at, std::span<std::byte> to) -> Status {
    const Result<schema::SliceReply> slice = store.read_slice(id, kMetricsFile, at, to.size());
    if (!slice.ok()) return slice.error();
    if (slice->data.size() != to.size()) return Error{ErrorKind::kIo, std::string(kMetricsFile) + " became shorter"};
    std::memcpy(to.data(), slice->data.data(), to.size());
    return {};
  };
  snapshot_source_ = std::make_unique<SnapshotSource>(std::move(past), *prepared_->replica);
  return {keeper_.name_of(journal_.status().digest_step, journal_.status().digest), snapshot_source_->parts()};
}

void Run::send_snapshot_chunks(Seat to, const schema::SnapshotRequest& want) {
  if (!snapshot_source_ || !quiesced()) return;
  ++context_.news.progress.count;
  const schema::FrameHeader header{identity_.run_key, view_->view().number(), 0};
  const Status sent = snapshot_source_->want(want, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    context_.network.mesh.send({to},
                               schema::encode_frame(header, schema::SnapshotChunk{at, bytes}, context_.network.pool));
  });
  if (!sent.ok()) context_.news.log.warning("feed-failed", {{"run", identity_.id}, {"why", sent.error().message}});
}

Status Run::receive_snapshot(Seat from, std::uint32_t view, const schema::SnapshotOffer& feed) {
  TG_CHECK(prepared_ != nullptr && !begun());
  snapshot_sink_.reset();
  const std::string metrics = context_.disk.store.directory(identity_.id) + "/" + kMetricsFile;
  fed_metrics_ = std::make_unique<engine::AtomicFile>(metrics);
  if (Status opened = fed_metrics_->open(); !opened.ok()) return opened;
  Result<std::unique_ptr<SnapshotSink>> intake = SnapshotSink::of(
      feed, *prepared_->replica,
      [&file = *fed_metrics_](std::span<const std::byte> bytes) { return file.write(bytes.data(), bytes.size()); });
  if (!intake.ok()) return intake.error();
  snapshot_sink_ = *std::move(intake);
  donor_ = from;
  donor_view_ = view;
  return {};
}

Status Run::on_snapshot_chunk(Seat from, const schema::SnapshotChunk& slice, std::uint64_t now_ms) {
  if (!snapshot_sink_ || from != donor_ || begun()) return {};
  ++context_.news.progress.count;
  if (Status taken = snapshot_sink_->take(slice, now_ms); !taken.ok()) return taken;
  request_chunks(now_ms);
  return {};
}

void Run::request_chunks(std::uint64_t now_ms) {
  if (!snapshot_sink_ || begun()) return;
  if (const std::optional<schema::SnapshotRequest> want = snapshot_sink_->due(now_ms))
    context_.network.mesh.send({donor_},
                               schema::encode_frame({identity_.run_key, donor_view_, 0}, *want, context_.network.pool));
}

Status Run::check_snapshot() const {
  TG_CHECK(has_snapshot());
  const std::uint64_t digest = Replica::combine(prepared_->replica->segment_digests());
  if (digest == snapshot_sink_->state().digest) return {};
  return Error{ErrorKind::kCorrupt, "the state of step " + std::to_string(snapshot_sink_->state().step) + " came as " +
                                        hex_digest(digest) + ", and the members have " +
                                        hex_digest(snapshot_sink_->state().digest)};
}

Status Run::join(View view, const schema::Commit& choice, const std::string& why) {
  TG_CHECK(has_snapshot() && !begun());
  const Result<RunRecord> record = record_from_json(snapshot_sink_->record());
  if (!record.ok()) return record.error();
  SavedStart start;
  start.state = snapshot_sink_->state();
  start.directory = context_.disk.store.directory(identity_.id);
  start.from_the_beginning = start.state.step == 0;
  start.counters = record->status;
  start.record = std::make_shared<const RunRecord>(*record);
  start_ = std::move(start);
  if (Status kept = fed_metrics_->commit(); !kept.ok()) return kept;
  view_.emplace(parts(), std::move(view));
  view_->prepared(prepared_, is_evaluated(start_->state.step));
  ViewInterval before = interval_of(*record);
  before.ended = schema::clip_text("CHANGED: " + why, schema::kMaxReasonBytes);
  keeper_.joins(snapshot_sink_->views(), std::move(before));
  if (Status entered = enter(choice); !entered.ok()) return entered;
  choice_ = choice;
  snapshot_sink_.reset();
  fed_metrics_.reset();
  trainer_->refit(view_->view().number(), part_of(context_, identity_, view_->view()), Step(start_->state.step));
  return {};
}

void Run::leave(Round start) {
  if (!goes_on()) return;
  freeze();
  view_->end_helpers();
  const Round committed = prepared_->replica->committed_rounds();
  if (committed != start && !(committed == start.next() && view_->member().can_go_back())) return;
  view_->member().install(start);
  if (committed != start) journal_.drop_unconfirmed();
}

void Run::pause(const std::string& why) {
  if (!goes_on()) return;
  const bool paused = journal_.status().state == schema::RunState::kPaused;
  if (!why.empty()) return paused ? journal_.note(why) : journal_.state(schema::RunState::kPaused, why);
  if (!paused) return;
  journal_.state(view_->member().stopping() ? schema::RunState::kStopping : schema::RunState::kRunning, "");
}

Status Run::fitted(std::uint32_t view, Result<std::shared_ptr<const PreparedView>> result) {
  if (!goes_on() || view != view_->view().number() || view_->member().frozen()) return {};
  if (!result.ok()) return unfit(result.error());
  fitted_ = *std::move(result);
  bool copies = true;
  if (const Status fits = check_memory_of(facts(*choice_), copies); !fits.ok())
    return unfit(Error{fits.error().kind, context_.self.config.node + ": " + fits.error().message});
  keeper_.fitted(*fitted_, copies);
  if (const Status begun = view_->begin(*choice_); !begun.ok()) return unfit(begun.error());
  return {};
}

Status Run::unfit(const Error& error) {
  unfit_ = error.message;
  return error;
}

// --- its end ---

void Run::begin_save(schema::RunState state, const std::string& reason) {
  const Round committed = prepared_->replica->committed_rounds();
  view_->member().rest();
  // Of use to a resume only, and a COMPLETED run has none.
  const bool one_ahead = state != schema::RunState::kCompleted && prepared_->replica->committed_rounds() < committed;
  read_digests();
  journal_.state(state, reason);
  const std::optional<schema::RunStatus> ahead = one_ahead ? journal_.take_unconfirmed() : std::nullopt;
  keeper_.begin_save(journal_.refreshed(), ahead, journal_.take_metrics(), timeline_);
}

// Of the last state. A device that has failed no longer says them: the last known ones stay, with their step.
void Run::read_digests() {
  try {
    journal_.digest(Replica::combine(prepared_->replica->segment_digests()),
                    prepared_->replica->confirmed_rounds().value());
  } catch (const std::exception& error) {
    context_.news.log.warning("digest-failed", {{"run", identity_.id}, {"error", error.what()}});
  }
}

}  // namespace tg::daemon
