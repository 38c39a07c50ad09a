#include "daemon/node/node.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "daemon/run/recorded_end.h"
#include "daemon/store/vote_file.h"
#include "engine/resources/descriptors.h"
#include "kernels/base/check.h"
#include "kernels/base/now.h"
#include "kernels/base/random.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kTickMs = 20;
constexpr int kCloseLingerMs = 500;
constexpr std::uint64_t kCleanupMs = 60'000;  // between deletions of old runs and retries of unsaved states

std::uint64_t micros_of(std::chrono::steady_clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

// Whether the frame is for the run's Member; all others but probes are for Membership.
bool is_step_frame(const schema::FrameBody& body) {
  return std::holds_alternative<schema::StepFrame>(body) || std::holds_alternative<schema::Scalers>(body) ||
         std::holds_alternative<schema::Chunk>(body) || std::holds_alternative<schema::Credit>(body) ||
         std::holds_alternative<schema::Report>(body) || std::holds_alternative<schema::Reached>(body);
}

// A proposer that pauses for less than peer-timeout keeps its right to decide.
MembershipOptions membership_options(const RunContext& context) {
  MembershipOptions options{.names = context.self.names,
                            .self = context.self.config.seat(),
                            .weight = static_cast<std::uint16_t>(context.self.config.weight),
                            .directory = context.self.directory,
                            .incarnation = context.self.incarnation,
                            .peer_timeout_ms = context.self.config.peer_timeout_ms};
  options.proposer_timeout_ms =
      std::max(options.proposer_timeout_ms, context.self.config.peer_timeout_ms + options.claim_timeout_ms);
  return options;
}

}  // namespace

Node::Node(const RunContext& context, EventQueue& queue, ControlServer& control, ServiceManager& service_manager,
           PeerFile& peer_file)
    : context_(context),
      queue_(queue),
      control_(control),
      service_manager_(service_manager),
      peer_file_(peer_file),
      membership_(membership_options(context)),
      dry_run_(context, control),
      resumption_(context, queue),
      auto_resume_(context, resumption_),
      pending_(context),
      examiner_({.config = context.self.config,
                 .build = context.self.build,
                 .threads = context.machine.threads,
                 .mesh = context.network.mesh,
                 .pool = context.network.pool}),
      search_(context, queue, control),
      lineages_(context),
      bursts_(context.self.names.kMaxNodes) {
  for (const RunRecord& record : context.storage.store.records()) restore_run(record);
  for (const EndedRun& run : context.storage.store.kept_votes()) restore_kept_vote(run.id);
  publish_last_run();
}

// Without an active run the metrics show the last one.
void Node::publish_last_run() {
  std::int64_t newest_ms = 0;
  for (const RunRecord& record : context_.storage.store.records()) {
    if (record.status.started_ms < newest_ms) continue;
    newest_ms = record.status.started_ms;
    context_.news.metrics.numbers().run_state = record.status.state;
  }
}

// Restores what this node knows of a run from before its restart, including its vote.
void Node::restore_run(const RunRecord& record) {
  membership_.add_past_run(record.key, past_run(record, context_.self.names, context_.self.config.seat()));
  if (schema::is_final(record.status.state)) return;
  Result<VoterState> vote = read_vote(context_.storage.store.directory(record.id));
  if (vote.ok() && vote->run_key != record.key)
    vote = Error{ErrorKind::kNotFound, "its vote is of another lineage of run " + record.id};
  if (!vote.ok()) {
    context_.news.log.warning("vote", {{"run", record.id}, {"what", vote.error().message}});
    return membership_.add_lost_vote(record.key, vote.error().message);
  }
  for (schema::NextView* const view : {&vote->view, &vote->accepted})
    if (view->names.empty()) view->names = record.nodes;  // an older vote
  voted_runs_[record.key] = record.id;
  membership_.add_past_voter(*std::move(vote), record.id, record.status.lineage);
}

// A run of that id that has begun since has another vote.
void Node::restore_kept_vote(const std::string& id) {
  if (context_.storage.store.exists(id)) return;
  Result<VoterState> vote = read_vote(context_.storage.store.vote_directory(id));
  if (!vote.ok()) return context_.news.log.warning("vote", {{"run", id}, {"what", vote.error().message}});
  voted_runs_[vote->run_key] = id;
  membership_.add_past_voter(*std::move(vote), id);
}

void Node::run() {
  while (!stopped_) {
    process_events();
    tick();
    forward_votes();
    apply_actions();
    process_early_frames();
    const RunContext::Storage& disk = context_.storage;
    if (shutting_down_ && !run_ && !disk.writer.oldest_ms() && !disk.saver.oldest_ms()) stopped_ = true;
  }
  context_.network.mesh.close(kCloseLingerMs);
}

// Takes the queued events, then executes one task; waits if there is neither.
void Node::process_events() {
  const auto take = [this](std::chrono::milliseconds at_most) {
    std::optional<Event> event = queue_.pop(at_most);
    if (event) std::visit([this](auto& one) { on_event(one); }, *event);
    return event.has_value();
  };
  std::size_t taken = 0;
  while (!stopped_ && taken < (run_ ? run_->view().max_events() : 1) && take(std::chrono::milliseconds(0))) {
    ++taken;
    if (membership_.has_actions()) return;  // the next frame may belong to the view that this one has decided
  }
  if (run_ && run_->work()) {
    ++context_.news.progress.count;
    return;
  }
  if (taken > 0) return;
  const Waiting waiting = run_ ? run_->waiting() : Waiting{};
  const bool for_others = !waiting.ranks.empty();
  if (for_others) context_.news.progress.phase = waiting.phase;
  const Clock::time_point start = Clock::now();
  std::optional<Event> event = queue_.pop(std::chrono::milliseconds(kTickMs));
  if (for_others) run_->view().on_waited(waiting, start);
  if (event) std::visit([this](auto& one) { on_event(one); }, *event);
}

// Before later ones of their views.
void Node::process_early_frames() {
  while (!early_frames_.empty()) {
    FrameArrived& event = early_frames_.front();
    if (membership_.is_ahead(event.frame.header.run, event.frame.header.view)) return;
    early_bytes_ -= event.frame.bytes;
    FrameArrived next = std::move(event);
    early_frames_.pop_front();
    on_event(next);
    apply_actions();
  }
}

// A vote may be complete long after the event that began it: the link's measurement has a deadline of its own.
void Node::forward_votes() {
  if (run_)
    if (const std::optional<schema::Vote> vote = run_->preparation().take_vote())
      membership_.on_prepared(run_->identity().run_key, *vote, steady_ms(), run_->preparation().data_names());
  dry_run_.tick();
}

void Node::tick() {
  const std::uint64_t now = steady_ms();
  if (now - last_tick_ms_ < kTickMs) return;
  last_tick_ms_ = now;
  peer_file_.tick(now);
  service_manager_.tick(now, control_.turns(), [this] { return service_status(); });
  context_.network.mesh.set_run_phase(run_ != nullptr, run_ && !run_->begun());
  context_.network.mesh.tick(now);
  for (const DisconnectGrace::Disconnect& disconnect : disconnect_grace_.take_due(now))
    membership_.on_link_lost(disconnect.peer, disconnect.message, disconnect.up_again, now);
  check_links(now);
  check_disk(now);
  membership_.tick(now);
  examiner_.tick();
  search_.tick();
  try_auto_resume(now);
  if (run_ && membership_.is_joining()) run_->request_chunks(now);
  publish_metrics();
  if (!run_ && now - last_cleanup_ms_ >= kCleanupMs) {
    last_cleanup_ms_ = now;
    context_.storage.writer.post([&store = context_.storage.store] { store.delete_expired(); });
    save_unsaved();
  }
  if (!run_ || !run_->begun()) return;
  if (early_rebuilt_ && now >= not_before_ms_) {
    RunRebuilt rebuilt = *std::exchange(early_rebuilt_, std::nullopt);
    on_event(rebuilt);
  }
  run_->pause(membership_.pause_reason());
  if (run_->view().is_prepared() && run_->view().member().is_sealed()) ++context_.news.progress.count;  // no stall
  run_->tick();
  const std::uint64_t timeout = run_->view().step_timeout_ms();
  if (timeout == step_timeout_ms_) return;
  step_timeout_ms_ = timeout;
  control_.set_step_timeout(timeout);
}

void Node::publish_metrics() {
  const Metrics::Clock::time_point now = Metrics::Clock::now();
  if (!context_.news.metrics.is_due(now)) return;
  Numbers& numbers = context_.news.metrics.numbers();
  const LinkTable& links = context_.network.mesh.links();
  if (const auto state = membership_.state()) numbers.run_state = state;
  numbers.members_away = 0;
  if (run_ && run_->begun()) {
    const View& view = run_->view().view();
    for (const Seat seat : view.seats())
      if (seat != context_.self.config.seat() && !links.is_up(seat)) ++numbers.members_away;
    numbers.members_away += run_->departed_count();
  }
  for (const Seat seat : context_.self.names.places()) {
    PeerNumbers& peer = numbers.peers[seat];
    peer.sent_bytes = links[seat].sent_bytes;
    peer.received_bytes = links[seat].received_bytes;
    peer.up = links.is_up(seat) && control_.is_up(seat);
  }
  rejected(Rejection::kMalformed) = links.malformed;
  rejected(Rejection::kStranger) = links.unknown_senders;
  rejected(Rejection::kFlood) = queue_.dropped();
  context_.news.metrics.publish(now);
}

// A start shows the nodes that it waits for; a problem that waiting does not solve ends it.
void Node::check_links(std::uint64_t now) {
  std::string text;
  for (const Seat peer : membership_.awaited()) {
    const std::optional<LinkProblem> problem = context_.network.mesh.links().problem(peer);
    text += (text.empty() ? "waiting for " : "; ") + context_.self.names[peer] + (problem ? ": " + problem->why : "");
    if (problem && !problem->may_recover) membership_.on_incompatible_peer(peer, problem->why, now);
  }
  pending_.show_wait(text);
}

// A disk that stands still: this node cannot vote. Runs end here without it.
void Node::check_disk(std::uint64_t now) {
  const std::string problem = disk_problem(context_.storage.writer, context_.self.config);
  if (problem != std::exchange(disk_problem_, problem))
    context_.news.log.warning("disk", {{"what", problem.empty() ? "it goes on" : problem}});
  if (problem.empty()) return;
  membership_.on_disk_problem(problem, now);
  if (run_ && run_->checkpointer().is_writing()) {
    RunSaved not_saved{run_->identity().run_key, schema::SaveState::kNotSaved, problem, {}, nullptr};
    on_event(not_saved);
  }
  for (const auto& [id, record] : std::exchange(unrecorded_, {})) context_.storage.store.show_ended(record);
}

void Node::save_unsaved() {
  if (context_.storage.store.unsaved().runs.empty()) return;
  context_.storage.saver.post([&store = context_.storage.store, &queue = queue_] {
    for (const std::uint64_t key : store.save_unsaved())
      queue.post(RunSaved{key, schema::SaveState::kSaved, "", {}, nullptr});
  });
}

// --- events ---

void Node::on_event(FrameArrived& event) {
  const schema::FrameHeader& header = event.frame.header;
  const schema::FrameBody& body = event.frame.body;
  if (const auto* probe = std::get_if<schema::Probe>(&body)) {
    const BurstMeter::Frame frame{header.run, probe->burst, probe->last};
    if (const auto micros = bursts_.on_frame(event.from, frame, micros_of(event.at)))
      context_.network.mesh.send(
          {event.from}, schema::encode_frame(header, schema::ProbeReply{probe->burst, *micros}, context_.network.pool));
    return;
  }
  if (const auto* reply = std::get_if<schema::ProbeReply>(&body)) {
    if (is_current(header.run)) run_->preparation().on_probe_reply(event.from, *reply);
    if (dry_run_.has_run_key(header.run)) dry_run_.on_probe_reply(event.from, *reply);
    return examiner_.on_probe_reply(header.run, event.from, reply->burst);
  }
  if (membership_.is_ahead(header.run, header.view)) {
    if (early_bytes_ + event.frame.bytes > schema::kMaxQueuedBytesPerPeer)
      return membership_.on_peer_lost(event.from, context_.self.names[event.from] + " floods the next view",
                                      steady_ms());
    early_bytes_ += event.frame.bytes;
    early_frames_.push_back(std::move(event));
    return;
  }
  if (const auto* chunk = std::get_if<schema::SnapshotChunk>(&body))
    return on_snapshot_chunk(event.from, header, *chunk);
  if (!is_step_frame(body)) return membership_.on_frame(event.from, header, body, steady_ms());
  const bool accepted = is_current(header.run) && run_->view().is_prepared() && (!run_->begun() || run_->is_active());
  if (accepted && !view_links_.is_intact(event.from) && header.view == run_->view().view().number()) {
    ++dropped_frames_;
    return;
  }
  if (!accepted || !run_->view().member().on_frame(event.from, header, body, std::move(event.keep))) {
    ++dropped_frames_;
    ++rejected(Rejection::kOtherRun);
    return membership_.on_stale_view(event.from, header.run, header.view, steady_ms());
  }
  ++context_.news.progress.count;
  const auto* report = std::get_if<schema::Report>(&body);
  if (report != nullptr && report->last) membership_.on_peer_finished(event.from);
}

void Node::on_snapshot_chunk(Seat from, const schema::FrameHeader& header, const schema::SnapshotChunk& chunk) {
  if (!is_current(header.run) || run_->begun()) return;
  if (run_->has_snapshot()) return;
  const Status taken = run_->on_snapshot_chunk(from, chunk, steady_ms());
  if (taken.ok() && !run_->has_snapshot()) return;
  const Status verified = taken.ok() ? run_->check_snapshot() : taken;
  membership_.on_snapshot_done(header.run, verified.ok() ? "" : verified.error().message, steady_ms());
}

void Node::on_event(HistoryRead& event) {
  if (is_current(event.run_key) && run_->quiesced())
    membership_.on_snapshot_offer(event.run_key, run_->begin_snapshot(event), steady_ms());
}

void Node::on_event(RunStepEvent& event) {
  if (!is_current(event.run_key) || !run_->is_active()) return;
  ++context_.news.progress.count;
  std::visit([&member = run_->view().member()](const auto& one) { member.on_event(one); }, event.event);
}

void Node::on_event(RunSaved& event) {
  if (!event.problem.empty()) context_.news.log.error("save-failed", {{"error", event.problem}});
  if (is_current(event.run_key)) {
    run_->checkpointer().on_saved(event);
    return membership_.on_saved(event.run_key, run_->checkpointer().outcome(event.save, event.problem), steady_ms());
  }
  // The disk took longer than the other members waited.
  for (const RunRecord& record : context_.storage.store.records()) {
    if (record.key != event.run_key || !schema::has_ended(record.status.state)) continue;
    context_.news.log.info("saved-late", {{"run", record.id}, {"save", to_word(event.save)}});
    if (!event.files.empty())
      context_.storage.writer.post([&store = context_.storage.store, key = event.run_key, files = event.files] {
        store.amend(key, [&](RunRecord& one) { one.files = files; });
      });
    schema::Ended own = past_run(record, context_.self.names, context_.self.config.seat()).end.truth;
    own.save = event.save;
    own.problem = schema::clip_text(event.problem, schema::kMaxProblemBytes);
    membership_.on_saved(event.run_key, own, steady_ms());
  }
}

void Node::on_event(CheckpointWritten& event) {
  if (is_current(event.run_key)) run_->on_checkpoint_written(event);
}

void Node::on_event(VoteWritten& event) { membership_.on_vote_written(event.run_key, event.problem, steady_ms()); }

void Node::on_event(RecordWritten& event) {
  if (!event.status.ok())
    context_.news.log.error("record-failed", {{"run", event.run_id}, {"error", event.status.error().message}});
  unrecorded_.erase(event.run_id);
  if (run_ == nullptr) publish_last_run();
  if (const std::optional<RunRecord> record = context_.storage.store.recorded(event.run_id);
      record && record->has_begun() && record->key == contradiction_.key)
    set_aside(*record);
  if (std::optional<ListSavedStates> unlisted = std::exchange(unlisted_, std::nullopt)) apply(*unlisted);
}

void Node::on_event(RunPrepared& event) {
  if (dry_run_.has_run_key(event.run_key)) return dry_run_.on_prepared(std::move(event.result));
  if (is_current(event.run_key) && run_->number() == event.number) run_->on_prepared(std::move(event.result));
}

void Node::on_event(RunRebuilt& event) {
  if (!is_current(event.run_key)) return;
  if (steady_ms() < not_before_ms_) {
    early_rebuilt_ = std::move(event);
    return;
  }
  const Status ready = run_->on_rebuilt(event.view, std::move(event.result));
  if (!ready.ok() && event.view == View::kFirst)  // the run could not begin
    return membership_.on_failed({ErrorKind::kRunFailed, context_.self.config.node, "prepare", ready.error().message},
                                 steady_ms());
  if (!ready.ok()) return membership_.on_peer_lost(context_.self.config.seat(), ready.error().message, steady_ms());
  if (run_->view().begun()) log_view_change(true);
}

void Node::on_event(ConnectionChanged& event) {
  membership_.set_weight(event.peer, context_.network.mesh.links().weight(event.peer));
  if (event.up && disconnect_grace_.on_reconnected(event.peer)) return;
  if (event.up || !run_ || !run_->begun())
    return membership_.on_connection_changed(event.peer, event.up, steady_ms(),
                                             context_.network.mesh.links()[event.peer].rekeying);
  view_links_.mark_broken(event.peer);
  disconnect_grace_.on_disconnected(event.peer,
                                    context_.self.config.node + " lost the connection to " +
                                        context_.self.names[event.peer] + " in " +
                                        std::string(to_word(context_.news.progress.phase.load())) + " of step " +
                                        std::to_string(context_.news.progress.step),
                                    steady_ms(), context_.network.mesh.links()[event.peer].rekeying);
}

void Node::on_event(PeerLost& event) {
  const auto state = membership_.state();
  if (event.only_during_run && (!state || *state == schema::RunState::kPending)) return;
  const RunIdentity* current = membership_.current();
  if (!event.run_id.empty() && (current == nullptr || current->id != event.run_id)) return;    // the run has ended
  if (event.peer == context_.self.config.seat() && run_ && run_->checkpointer().is_writing())  // a hung disk
    return membership_.on_saved(run_->identity().run_key,
                                run_->checkpointer().outcome(schema::SaveState::kNotSaved, event.message), steady_ms());
  membership_.on_peer_lost(event.peer, event.message, steady_ms());
}

void Node::on_event(PrepareProgress& event) {
  const RunIdentity* current = membership_.current();
  if (current != nullptr && current->id == event.run_id) membership_.on_prepare_progress(event.peer, steady_ms());
}

void Node::on_event(ForeignHeartbeat& event) {
  const schema::Heartbeat& beat = event.beat;
  if (beat.view == 0 && beat.ended_run.empty()) return auto_resume_.on_peer_left(event.peer);
  const std::string& id = beat.lineage_run();
  const std::optional<RunRecord> record = context_.storage.store.recorded(id);
  const bool known = record && record->has_begun();
  Held own;
  if (known) {
    own = lineages_.held(*record);
    const bool runs = is_current(record->key) && run_->begun();
    if (runs) own.step = run_->confirmed_step();
    const RunIdentity* const current = membership_.current();
    const bool takes_part = current != nullptr && current->id == id;
    const Heard heard = compare(lineage_of(beat), own);
    if (heard == Heard::kLower) return on_lower_lineage(beat, *record, own);
    if (heard == Heard::kContradicts) {
      contradiction_ = {record->key, contradiction_text(beat.node, lineage_of(beat), context_.self.config.node, own),
                        own.lineage.number < beat.by_order};
      if (!takes_part) return set_aside(*record);
    }
    // A run that has ended: the peer will learn of that.
    if (heard == Heard::kSame && schema::is_authoritative(record->status.state)) return;
    if (heard == Heard::kSame && runs && beat.view == run_->view().view().number())
      return;  // it was ahead at the start
  }
  if (!beat.run_id.empty()) auto_resume_.on_foreign_heartbeat(event.peer, id, steady_ms());
  membership_.on_heartbeat(event.peer, beat, own, steady_ms());
  if (beat.run_id.empty() || shutting_down_ || (run_ && run_->begun())) return;
  if (unrecorded_.contains(id) || !disk_problem_.empty()) return;
  const bool stays_out = record ? record->left_by_order : lineages_.stays_out(id, beat.by_order);
  if (!stays_out) membership_.on_run_discovered(id, steady_ms());
}

// The peer's lineage ends where this node's is heard; an ended one is not in this node's heartbeats by itself.
void Node::on_lower_lineage(const schema::Heartbeat& beat, const RunRecord& record, const Held& own) {
  const std::string text = lineages_.on_lower(beat, own);
  if (is_current(record.key) && run_->begun() && !text.empty()) run_->show_note(text);
  if (membership_.idle() && schema::is_authoritative(record.status.state)) control_.show_ended(record.id, own.lineage);
}

void Node::set_aside(const RunRecord& record) {
  const Result<RunRecord> aside =
      lineages_.set_aside(record, record.key + contradiction_.view, contradiction_.why, contradiction_.by_order);
  if (!aside.ok()) return;
  if (const auto voted = voted_runs_.find(aside->key); voted != voted_runs_.end()) voted->second = aside->id;
  membership_.set_aside(aside->key, past_run(*aside, context_.self.names, context_.self.config.seat()));
}

// Links follow by themselves; a view keeps its members until a link is lost.
void Node::on_event(PeerLinesRead& event) {
  const schema::NodeConfig& config = context_.self.config;
  Log& log = context_.news.log;
  const auto keep = [&](const std::string& why) {
    log.warning("peer-lines-kept", {{"why", why}, {"next", "the previous peer lines stay in use"}});
  };
  if (!event.config.ok()) return keep(event.config.error().message);
  if (event.config->node != config.node) return keep("another name takes effect when tgd is restarted");
  const Per<Seat, schema::PeerAddress> after = event.config->nodes.lines();
  const PeerLineChanges changes(config.nodes.lines(), after);
  if (changes.empty()) return;
  schema::NodeList nodes = config.nodes;
  if (!nodes.set_lines(after))
    return keep("more than " + std::to_string(nodes.kMaxNodes) + " names since the start; restart tgd");
  log.info("peer-lines", {{"added", changes.added}, {"removed", changes.removed}, {"changed", changes.changed}});
  membership_.on_peer_lines(steady_ms());
  if (event.config->mesh_port() != config.mesh_port())
    log.warning("peer-lines", {{"what", "the other port of " + config.node + " counts when its tgd is restarted"}});
  if (const Status enough = engine::reserve_descriptors(schema::descriptors_of(after.size()), "the new peer lines");
      !enough.ok())
    log.warning("peer-lines", {{"what", enough.error().message}});
}

void Node::on_event(ShutDown&) {
  examiner_.stop_measuring("it is being shut down");
  search_.cancel({ErrorKind::kFailed, context_.self.config.node + " is being shut down"});
  save_unsaved();
  membership_.shut_down(steady_ms());
  apply_actions();
  shutting_down_ = true;  // the loop ends once the run, if any, is saved
}

void Node::on_event(ControlCall& event) {
  if (const auto* request = std::get_if<schema::StartRequest>(&event.body)) return start(event.token, *request);
  if (const auto* request = std::get_if<schema::ResumeRequest>(&event.body)) return resume(event.token, *request);
  if (const auto* request = std::get_if<schema::StopRequest>(&event.body)) return stop(event.token, *request);
  if (const auto* request = std::get_if<schema::LeaveRequest>(&event.body)) return leave(event.token, *request);
  if (const auto* request = std::get_if<schema::ExamineRequest>(&event.body)) return examine(event.token, *request);
  if (const auto* request = std::get_if<schema::ForecastRequest>(&event.body))
    return dry_run_.plan(event.token, *request, busy_reason());
  if (const auto* request = std::get_if<schema::MisclassificationsRequest>(&event.body)) {
    const std::string why = busy_reason();
    const std::string busy = why.empty() && examiner_.measuring() ? "links are being measured (tgctl doctor)" : why;
    return search_.begin(event.token, *request, busy, draw_bits());
  }
}

bool Node::is_busy() const {
  return run_ || dry_run_.is_active() || examiner_.measuring() || search_.is_active() ||
         !context_.news.progress.orphaned_threads.what().empty();
}

std::string Node::busy_reason() const {
  const RunIdentity* const current = membership_.current();
  if (run_ || current != nullptr) return "run " + (run_ ? run_->identity() : *current).id + " is active";
  if (dry_run_.is_active()) return "a dry run is in progress (start --dry-run, plan)";
  if (search_.is_active()) return "the model of an ended run is being evaluated (report --mistakes)";
  return context_.news.progress.orphaned_threads.what();
}

void Node::examine(std::uint64_t token, const schema::ExamineRequest& request) {
  examiner_.examine(request, busy_reason(), draw_bits(), [this, token](Result<schema::Examination> found) {
    const std::string why = membership_.pause_reason();
    if (found)
      found->run_problem = why.empty() ? lineages_.problem()
                                       : schema::clip_text("run " + membership_.current()->id + " is PAUSED: " + why,
                                                           schema::kMaxSentenceBytes);
    found ? control_.reply(token, *std::move(found)) : control_.reply(token, found.error());
  });
}

void Node::start(std::uint64_t token, const schema::StartRequest& request) {
  const auto refuse = [&](Error error) { control_.reply(token, std::move(error)); };
  Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job.ok()) return refuse(job.error());
  Result<std::vector<Seat>> members_asked = seats_without(request.without);
  if (!members_asked.ok()) return refuse(members_asked.error());
  const std::size_t members = members_asked->empty() ? context_.self.names.size() : members_asked->size();
  if (const Status valid = schema::validate_job(*job, members); !valid.ok()) return refuse(valid.error());
  RunIdentity identity{draw_bits(), request.run_id, schema::canonical_job(*job), job->start_timeout_ms};
  identity.members = *std::move(members_asked);
  if (identity.id.empty()) identity.id = schema::draw_run_id(to_word(job->model), unix_time_ms(), draw_bits());
  if (context_.storage.store.exists(identity.id))
    return refuse({ErrorKind::kRefused, "run " + identity.id + " exists already; choose another --id"});
  if (request.dry_run) {
    if (const Status free = check_orphaned_threads(); !free.ok()) return refuse(free.error());
    if (dry_run_.is_active() || run_ || search_.is_active())
      return refuse(
          {ErrorKind::kRefused, "this node is busy with a run or a measurement; try again when it has ended"});
    identity.weights = context_.weights();
    identity.global_batch = schema::resolved_global_batch(*job, members);
    return dry_run_.begin(token, std::move(identity), std::move(job).value(), request.pictures);
  }
  propose(token, identity);
}

void Node::resume(std::uint64_t token, const schema::ResumeRequest& request) {
  Result<RunIdentity> identity = resumption_.proposal_for(request, draw_bits());
  if (!identity.ok()) return control_.reply(token, identity.error());
  if (identity->id == auto_resume_.run_elsewhere(steady_ms()) && !auto_resume_.is_left_by_all())
    return control_.reply(token, Error{ErrorKind::kRefused, "run " + identity->id + " is active; " +
                                                                context_.self.config.node + " joins it automatically"});
  Result<std::vector<Seat>> members_asked = seats_without(request.without);
  if (!members_asked.ok()) return control_.reply(token, members_asked.error());
  identity->members = *std::move(members_asked);
  propose(token, *identity);
}

// The nodes that are asked to take part; empty = all.
Result<std::vector<Seat>> Node::seats_without(const std::vector<std::string>& names) const {
  const schema::NodeList& all = context_.self.names;
  std::vector<Seat> seats = all.places_where([&](Seat seat) { return std::ranges::count(names, all[seat]) == 0; });
  for (const std::string& name : names) {
    if (name == context_.self.config.node)
      return Error{ErrorKind::kUsage, "--without " + name + ": this node got the request; ask another one: --address"};
    if (!all.listed(name))
      return Error{ErrorKind::kUsage, "--without " + name + ": no node has that name; tgctl status shows them"};
  }
  if (names.empty()) seats.clear();
  return seats;
}

// Proposes a new or resumed run to all nodes that are asked.
void Node::propose(std::uint64_t token, const RunIdentity& identity) {
  if (membership_.state() == schema::RunState::kPaused)
    return control_.reply(token, Error{ErrorKind::kRefused, "run " + membership_.current()->id +
                                                                " is PAUSED: " + membership_.pause_reason()});
  membership_.start(token, identity, steady_ms());
  const RunIdentity* const current = membership_.current();
  if (current == nullptr || current->run_key != identity.run_key) return;
  if (const Result<schema::JobSpec> job = schema::parse_job(identity.spec, "job"); job.ok())
    pending_.show(identity, *job, schema::RunState::kPending);
}

void Node::try_auto_resume(std::uint64_t now) {
  if (shutting_down_ || (is_busy() && !search_.is_active()) || !membership_.idle()) return;  // a run ends a search
  const AutoResume::Nodes nodes{[this](Seat seat) {
                                  return seat == context_.self.config.seat() ||
                                         (context_.network.mesh.links().is_up(seat) && control_.is_up(seat));
                                },
                                [this](const std::string& run) { return membership_.voters_of(run); }};
  if (const auto run = auto_resume_.next_proposal(nodes, now, draw_bits())) propose(kNoClient, *run);
}

// The resources of an earlier run's orphaned threads are not free for another run.
Status Node::check_orphaned_threads() const {
  const std::string busy = context_.news.progress.orphaned_threads.what();
  if (busy.empty()) return {};
  return Error{ErrorKind::kRefused, context_.self.config.node + " is " + busy +
                                        "; start the run when tgctl status no longer shows this, or restart tgd there"};
}

void Node::stop(std::uint64_t token, const schema::StopRequest& request) {
  const RunIdentity* current = membership_.current();
  const Result<std::string> resolved = context_.storage.store.resolve(request.run);  // also the current run
  if (!resolved.ok() && resolved.error().kind == ErrorKind::kUsage) return control_.reply(token, resolved.error());
  const std::string id = resolved.ok() ? *resolved : request.run;
  if (current != nullptr && current->id == id) {
    const Status stopped = membership_.stop(id, steady_ms());
    if (!stopped.ok()) return control_.reply(token, stopped.error());
    return control_.reply(token, schema::StopReply{id, schema::RunState::kStopping});
  }
  const std::optional<RunRecord> record = context_.storage.store.find(id);
  if (!record)
    return control_.reply(token, Error{ErrorKind::kNotFound, "no run '" + request.run + "'; list them: tgctl list"});
  control_.reply(token, schema::StopReply{record->id, record->status.state});
}

// Leaves the current run, or stays out of one that is active without this node, until tgctl join; the record keeps it.
void Node::leave(std::uint64_t token, const schema::LeaveRequest& request) {
  const std::string& node = context_.self.config.node;
  const bool begun = run_ && run_->begun();
  if (begun && !request.rejoin) {
    const Status left = membership_.leave(steady_ms());
    if (!left.ok()) return control_.reply(token, left.error());
    return control_.reply(token, schema::DoneReply{run_->identity().id, node, 0});
  }
  const std::string elsewhere = begun ? "" : auto_resume_.run_elsewhere(steady_ms());
  const std::optional<RunRecord> record = context_.storage.store.recorded(elsewhere);
  if (!record && request.rejoin && lineages_.let_in(elsewhere))
    return control_.reply(token, schema::DoneReply{elsewhere, node, 0});
  if (!record)
    return control_.reply(token,
                          Error{ErrorKind::kRefused, begun            ? node + " is in run " + run_->identity().id
                                                     : request.rejoin ? "no active run that " + node + " has left"
                                                                      : node + " is in no run"});
  if (!request.rejoin) membership_.stay_out();
  context_.storage.store.mark_left(record->key, !request.rejoin);
  context_.storage.writer.post([this, token, key = record->key, id = record->id] {
    context_.storage.store.rewrite(key);
    control_.reply(token, schema::DoneReply{id, context_.self.config.node, 0});
  });
}

// One line for `systemctl status`.
std::string Node::service_status() const {
  std::size_t up = 1;
  for (const Seat seat : context_.self.names.places())
    if (seat != context_.self.config.seat() && context_.network.mesh.links().is_up(seat)) ++up;
  const std::string nodes = context_.self.config.node + ", " + std::to_string(up) + " of " +
                            std::to_string(context_.self.names.size()) + " nodes up, ";
  const RunIdentity* const current = membership_.current();
  if (current == nullptr) return nodes + "no run";
  std::string run = nodes + "run " + current->id;
  if (const auto state = membership_.state()) run += " " + std::string(to_word(*state));
  if (is_current(current->run_key) && run_->begun())
    run += ", step " + std::to_string(context_.news.progress.step) + " of " + std::to_string(run_->job().steps);
  return run;
}

// --- what Membership has decided ---

void Node::apply_actions() {
  report_outcome();
  for (std::vector<MembershipAction> actions = membership_.take_actions(); !actions.empty();
       actions = membership_.take_actions()) {
    for (MembershipAction& action : actions) std::visit([this](auto& one) { apply(one); }, action);
    report_outcome();
  }
}

void Node::report_outcome() {
  if (!run_ || !run_->is_active()) return;
  const Member& member = run_->view().member();
  if (run_->quiesced() && !member.is_sealed()) membership_.on_quiesced(run_->identity().run_key, steady_ms());
  if (member.stopping()) membership_.on_stopping();
  if (member.failed())
    report_failure(*member.failed());
  else if (member.finished())
    membership_.on_finished(*member.finished(), member.finish_reason(), steady_ms());
}

// Reports a cause that ends the run for all as such; a failure of this node, or a silent member, costs one member.
void Node::report_failure(const schema::Fail& cause) {
  const Member& member = run_->view().member();
  if (member.is_sealed()) return;  // another view follows
  if (!member.unfit().empty())
    return membership_.on_peer_lost(context_.self.config.seat(), member.unfit(), steady_ms());
  if (cause.kind != ErrorKind::kUnreachable) return membership_.on_failed(cause, steady_ms());
  for (const Seat seat : context_.self.names.all())
    if (context_.self.names[seat] == cause.node) membership_.on_peer_lost(seat, cause.message, steady_ms());
}

void Node::apply(SendFrame& action) {
  std::erase_if(action.to, [this](Seat seat) { return !context_.self.names.is_listed(seat); });  // absent
  context_.network.mesh.send(action.to, schema::encode_frame(action.header, action.body, context_.network.pool));
}

void Node::apply(ListSavedStates& action) {
  if (unrecorded_.contains(action.run.id)) {
    unlisted_ = action;
    return;
  }
  // The proposer has missed a resume: the answer needs no disk, and status must not show a run that starts.
  if (const std::uint32_t lineage = resumption_.known_lineage(action.run.id); lineage >= action.run.resume->lineage)
    return membership_.on_offer(action.run.run_key, {}, lineage, steady_ms());
  if (const Result<schema::JobSpec> job = schema::parse_job(action.run.spec, "proposal"); job.ok()) {
    pending_.show(action.run, *job, schema::RunState::kStarting);
    control_.watch(action.run.id, job->step_timeout_ms);  // a member may die during the search, too
  }
  context_.news.progress.view = 0;
  save_unsaved();  // a state in memory counts once it is on the disk
  resumption_.find_states(action.run);
}

void Node::on_event(StatesFound& event) {
  const std::uint32_t lineage = resumption_.known_lineage(event.run_id);
  const std::uint64_t key = event.run_key;
  membership_.on_offer(key, resumption_.make_offer(std::move(event)), lineage, steady_ms());
}

void Node::apply(PrepareRun& action) {
  Result<schema::JobSpec> job = schema::parse_job(action.run.spec, "proposal");
  Status valid = job.ok() ? schema::validate_job(*job, action.view.size()) : Status(job.error());
  if (valid.ok() && !action.run.resume && !action.joins && action.run.id != pending_.id() &&
      context_.storage.store.exists(action.run.id))
    valid = Error{ErrorKind::kRefused,
                  context_.self.config.node + " already has a run " + action.run.id + "; choose another --id"};
  const Error refused{ErrorKind::kRefused, "run " + action.run.id + " begins; try again when it has ended"};
  search_.cancel(refused);
  dry_run_.cancel(refused);
  if (valid.ok()) valid = check_orphaned_threads();  // including those of the two
  if (valid.ok() && !disk_problem_.empty()) valid = Error{ErrorKind::kRefused, disk_problem_};
  std::optional<SavedStart> start;
  if (valid.ok() && action.run.resume && !action.joins) {
    Result<SavedStart> found = resumption_.saved_start(action.run);
    if (found.ok())
      start = *std::move(found);
    else
      valid = found.error();
  }
  if (!valid.ok()) {
    schema::Vote refusal;
    refusal.kind = valid.error().kind;
    refusal.message = valid.error().message;
    return membership_.on_prepared(action.run.run_key, refusal, steady_ms());
  }
  pending_.show(action.run, *job, schema::RunState::kStarting);
  context_.news.progress.view = 0;
  if (action.joins)
    control_.watch(action.run.id, job->step_timeout_ms, Per<Seat, bool>(context_.self.names.kMaxNodes));
  else
    control_.watch(action.run.id, job->step_timeout_ms);  // a member may die while it prepares, too
  examiner_.stop_measuring("run " + action.run.id + " began");
  if (action.run.global_batch == 0)
    action.run.global_batch = start && start->record->global_batch != 0
                                  ? start->record->global_batch
                                  : schema::resolved_global_batch(*job, action.view.size());
  run_ =
      std::make_unique<Run>(context_, action.run, std::move(job).value(), action.view, std::move(start), action.joins);
}

void Node::apply(BeginRun& action) {
  TG_CHECK(is_current(action.run.run_key));
  choice_ = action.choice;
  pending_.clear();
  step_timeout_ms_ = not_before_ms_ = 0;
  early_rebuilt_.reset();
  unlogged_change_.reset();
  view_links_.begin_view();
  voted_runs_[action.run.run_key] = action.run.id;
  log_run(action.run.id);
  if (!choice_.why.empty()) context_.news.log.info("exchange-chosen", {{"run", action.run.id}, {"why", choice_.why}});
  if (const Status begun = run_->begin(choice_.commit); !begun.ok()) {
    membership_.on_failed({ErrorKind::kRunFailed, context_.self.config.node, "prepare",
                           context_.self.config.node + ": " + begun.error().message},
                          steady_ms());
  }
  watch_members(action.run.id);
  auto_resume_.on_run_begun();
}

// Copies the log into the run's folder, where its vote is from now on: one that was kept is out of date.
void Node::log_run(const std::string& id) {
  const std::string directory = context_.storage.store.directory(id);
  std::error_code ignored;  // the first write reports the error
  std::filesystem::create_directory(directory, ignored);
  context_.storage.writer.post([&store = context_.storage.store, id] { store.delete_vote(id); });
  context_.news.log.set_sink(
      [run_log = std::make_shared<LineWriter>(directory + "/log.txt", context_.news.log.lost_note())](
          std::string_view line) { run_log->write(std::string(line)); });
}

void Node::apply(DropRun& action) {
  context_.news.progress.view = 0;
  control_.unwatch();
  if (is_current(action.run_key)) {
    context_.news.progress.phase = schema::Phase::kIdle;
    context_.news.log.set_sink(nullptr);  // a joiner's log
    run_.reset();
  }
  pending_.discard();
}

void Node::apply(SaveRun& action) {
  TG_CHECK(is_current(action.run_key));
  if (run_->begun()) return run_->begin_save(action.state, action.reason);
  // The run could not begin.
  schema::Ended own;
  own.state = action.state;
  own.reason = action.reason;
  own.since_ms = unix_time_ms();
  own.save = schema::SaveState::kNothing;
  membership_.on_saved(action.run_key, own, steady_ms());
}

void Node::apply(RecordEnd& action) {
  const auto voted = voted_runs_.find(action.run_key);
  const std::string id = voted == voted_runs_.end() ? "" : voted->second;
  context_.storage.writer.post([&context = context_, &queue = queue_, id, action] {
    const bool is_known = context.storage.store.amend(action.run_key, [&](RunRecord& record) {
      if (record.status.state != action.end.truth.state)
        context.news.log.info("outcome-corrected", {{"run", record.id},
                                                    {"recorded", to_word(record.status.state)},
                                                    {"state", to_word(action.end.truth.state)}});
      record_end(record, action.end, context.self.names);
    });
    if (!is_known && !id.empty()) context.storage.store.delete_vote(id);  // its record was deleted
    queue.post(RecordWritten{});
  });
}

void Node::apply(EndRun& action) {
  if (is_current(action.run_key)) log_view_change(false);
  context_.news.metrics.numbers().run_state = action.state;
  const bool begun = is_current(action.run_key) && run_->begun();
  if (begun) auto_resume_.set_failure("");
  std::string reason = action.reason;
  if (!begun && !schema::is_authoritative(action.state)) reason += link_problems(reason);
  RunRecord record = begun ? run_->checkpointer().ended(action.end) : pending_.ended(action.id, action.state, reason);
  record.left_by_order |= action.by_user;
  unrecorded_[action.id] = record;
  context_.storage.writer.post([&store = context_.storage.store, &queue = queue_, record = std::move(record)] {
    queue.post(RecordWritten{record.id, store.write(record)});
  });
  context_.news.log.write(action.state == schema::RunState::kFailed ? LogLevel::kError : LogLevel::kInfo, "run-ended",
                          {{"run", action.id}, {"state", to_word(action.state)}, {"reason", reason}});
  if (const std::uint64_t dropped = std::exchange(dropped_frames_, 0); dropped > 0)
    context_.news.log.info("frames-dropped", {{"run", action.id}, {"of-other-runs-or-views", dropped}});
  context_.news.log.set_sink(nullptr);
  control_.unwatch();
  context_.network.mesh.drop_queued();
  context_.news.progress.phase = schema::Phase::kIdle;
  context_.news.progress.view = 0;
  if (is_current(action.run_key)) run_.reset();
  pending_.clear();
  // The disconnects do not concern the next run.
  for (const DisconnectGrace::Disconnect& disconnect : disconnect_grace_.take_all())
    membership_.on_link_lost(disconnect.peer, disconnect.message, disconnect.up_again, steady_ms());
}

void Node::apply(AnswerStart& action) {
  if (action.token == kNoClient) {
    const std::string why =
        action.status.ok() ? "" : action.status.error().message + link_problems(action.status.error().message);
    auto_resume_.set_failure(why);
    if (!action.status.ok()) context_.news.log.warning("auto-resume", {{"run", action.run_id}, {"why", why}});
    return context_.storage.store.forget(action.status.ok() ? "" : action.run_id);
  }
  if (action.status.ok() && run_ && run_->identity().id == action.run_id) {
    schema::StartReply facts = run_->facts(choice_.commit);
    facts.link_mbps = choice_.link_mbps;  // the slowest member's
    add_prediction(facts, context_, *run_, choice_.commit);
    return control_.reply(action.token, std::move(facts));
  }
  if (action.status.ok() && action.from_step > 0 && membership_.idle()) {  // this node takes no part
    schema::StartReply facts;
    facts.run_id = action.run_id;
    facts.from_step = action.from_step;
    return control_.reply(action.token, std::move(facts));
  }
  Error error = action.status.ok() ? Error{ErrorKind::kFailed, "the run ended immediately"} : action.status.error();
  if (error.kind == ErrorKind::kRunFailed || error.kind == ErrorKind::kUnreachable)
    error.message += link_problems(error.message);
  if (error.kind == ErrorKind::kUnreachable) error.kind = ErrorKind::kFailed;  // a peer is unreachable, not this node
  // A refused start leaves no record (a FAILED one has been written), unless another start of this run is active.
  if (const RunIdentity* const current = membership_.current(); current == nullptr || current->id != action.run_id) {
    if (pending_.id() == action.run_id) pending_.clear();
    context_.storage.store.forget(action.run_id);
  }
  control_.reply(action.token, std::move(error));
}

void Node::apply(RestartProposal& action) {
  action.run.run_key = draw_bits();
  propose(action.token, action.run);
}

void Node::apply(RequestStop& action) {
  if (is_current(action.run_key)) run_->request_stop();
}

// --- a view change ---

void Node::apply(Seal& action) {
  SealReport report;
  if (is_current(action.run_key) && run_->is_active()) report = run_->seal();
  report.leaving = shutting_down_;
  const std::chrono::milliseconds silence(context_.self.config.peer_timeout_ms);
  report.reachable = context_.self.names.places_where([&](Seat seat) {
    return seat != context_.self.config.seat() && context_.network.mesh.links().is_responsive(seat, silence);
  });
  membership_.on_sealed(action.run_key, report, steady_ms());
}

void Node::apply(WriteVote& action) {
  const auto run = voted_runs_.find(action.run_key);
  TG_CHECK(run != voted_runs_.end(), action.run_key);
  const bool is_decision = action.vote.promised.count == 0;  // the view is new, without a ballot for the next one
  if (!is_decision && is_current(action.run_key) && run_->is_active()) run_->seal();
  const bool posted = context_.storage.writer.post(
      [&context = context_, &queue = queue_, vote = action.vote, is_decision, id = run->second] {
        const FaultInjection& fault = context.machine.fault;
        const std::uint64_t view_number = is_decision ? vote.view.number - 1 : vote.view.number;
        if (is_decision) fault.reached(schema::ChangePoint::kDecide, view_number);
        Status written = context.storage.store.check_directory(context.self.directory);
        if (written.ok()) written = write_vote(context.storage.store.vote_directory(id), vote);
        fault.reached(is_decision                         ? schema::ChangePoint::kDecided
                      : vote.accepted_in == vote.promised ? schema::ChangePoint::kAccept
                                                          : schema::ChangePoint::kPromise,
                      view_number);
        if (!written.ok()) context.news.log.error("vote-failed", {{"run", id}, {"error", written.error().message}});
        queue.post(VoteWritten{
            vote.run_key, written.ok() ? "" : schema::clip_text(written.error().message, schema::kMaxReasonBytes / 2)});
      });
  if (!posted) queue_.post(VoteWritten{action.run_key, "too many writes wait for its disk"});
}

void Node::apply(InstallView& action) {
  if (!is_current(action.run_key) || !run_->is_active()) return;
  context_.machine.fault.reached(schema::ChangePoint::kInstall, action.next.number - 1);
  const std::uint64_t now = steady_ms();
  const View next(action.next, context_.self.names);
  log_view_change(false);
  unlogged_change_ = action;
  for (const Seat seat : context_.self.names.all())
    if (seat != context_.self.config.seat() && !next.has(seat)) context_.network.mesh.drop_queued(seat);
  view_links_.begin_view();
  for (const Seat seat : disconnect_grace_.disconnected()) view_links_.mark_broken(seat);
  not_before_ms_ = action.next.waits ? now + ViewChange::kFirstStepDelayMs : 0;
  early_rebuilt_.reset();
  run_->pause("");
  const Status ready = run_->change_view(next, Round(action.next.start), action.next.why);
  watch_members(run_->identity().id);
  if (!ready.ok()) membership_.on_peer_lost(context_.self.config.seat(), ready.error().message, now);
}

// One line per view change: when this node promised, learned the decision and began the first step, after it noticed
// the reason.
void Node::log_view_change(bool begun) {
  const std::optional<InstallView> change = std::exchange(unlogged_change_, std::nullopt);
  if (!change) return;
  const ChangeTimes& times = change->times;
  const std::uint64_t noticed_ms = times.noticed_ms > 0    ? times.noticed_ms
                                   : times.promised_ms > 0 ? times.promised_ms
                                                           : times.decided_ms;
  const auto since_noticed = [&](std::uint64_t ms) {
    return ms < noticed_ms || ms == 0 ? std::string("-") : std::to_string(ms - noticed_ms);
  };
  context_.news.log.warning("view-changed", {{"run", run_->identity().id},
                                             {"view", change->next.number},
                                             {"members", change->next.members.size()},
                                             {"from-step", change->next.start},
                                             {"why", change->next.why},
                                             {"promised-ms", since_noticed(times.promised_ms)},
                                             {"decided-ms", since_noticed(times.decided_ms)},
                                             {"rebuilt-ms", begun ? since_noticed(steady_ms()) : "-"}});
}

void Node::apply(LeaveView& action) {
  if (!is_current(action.run_key) || !run_->begun()) return;
  log_view_change(false);
  context_.news.log.warning("evicted",
                            {{"run", run_->identity().id}, {"view", action.next.number}, {"why", action.next.why}});
  if (const std::uint64_t step = run_->confirmed_step(); action.next.start < step)
    contradiction_ = {action.run_key,
                      "view " + std::to_string(action.next.number) + " takes step " + std::to_string(step) + " of " +
                          context_.self.config.node + " back to " + std::to_string(action.next.start) +
                          ", for a voter had an old vote",
                      false, action.next.number};
  run_->leave(Round(action.next.start));
}

// --- a node joins a run ---

void Node::apply(QuiesceRun& action) {
  if (is_current(action.run_key)) run_->request_quiesce();
}

void Node::apply(ReadHistory& action) {
  if (is_current(action.run_key)) run_->read_history();
}

void Node::apply(SendSnapshotChunks& action) {
  if (is_current(action.run_key)) run_->send_snapshot_chunks(action.to, action.want);
}

// A joiner shows what it waits for, too.
void Node::apply(NoteJoin& action) {
  if (action.is_hint)
    return context_.news.log.warning("hint", {{"run", voted_runs_[action.run_key]}, {"what", action.what}});
  if (is_current(action.run_key) && run_->begun()) return run_->note_join(action.what);
  if (pending_.show_join(action.what)) context_.news.log.info("joining", {{"what", action.what}});
}

void Node::apply(ReleaseRun& action) {
  if (!is_current(action.run_key)) return;
  if (!action.why.empty())
    context_.news.log.warning("join-cancelled", {{"run", run_->identity().id}, {"why", action.why}});
  run_->release();
}

void Node::apply(ReceiveSnapshot& action) {
  if (!is_current(action.run_key) || run_->begun()) return;
  log_run(run_->identity().id);
  voted_runs_[action.run_key] = run_->identity().id;
  const Status opened = run_->receive_snapshot(action.from, action.view, action.feed);
  if (!opened.ok()) return membership_.on_snapshot_done(action.run_key, opened.error().message, steady_ms());
  run_->request_chunks(steady_ms());
}

void Node::apply(JoinRun& action) {
  TG_CHECK(is_current(action.run.run_key));
  choice_ = {action.choice, "", 0};
  pending_.clear();
  step_timeout_ms_ = 0;
  not_before_ms_ = action.next.waits ? steady_ms() + ViewChange::kFirstStepDelayMs : 0;
  early_rebuilt_.reset();
  unlogged_change_.reset();
  view_links_.begin_view();
  for (const Seat seat : disconnect_grace_.disconnected()) view_links_.mark_broken(seat);
  const Status joined = run_->join(View(action.next, context_.self.names), action.choice, action.next.why);
  if (!joined.ok()) context_.news.log.error("join-failed", {{"run", action.run.id}, {"error", joined.error().message}});
  watch_members(action.run.id);
  if (!joined.ok()) membership_.on_peer_lost(context_.self.config.seat(), joined.error().message, steady_ms());
}

// Tells liveness the members of the run's current view.
void Node::watch_members(const std::string& run) {
  const View& view = run_->view().view();
  Per<Seat, bool> members(context_.self.names.kMaxNodes);
  for (const Seat seat : view.seats()) members[seat] = true;
  context_.news.progress.view = view.number();
  if (const auto record = context_.storage.store.recorded(run); record && !is_current(lineage_.key))
    lineage_ = lineages_.held(*record).lineage;
  control_.watch(run, run_->view().step_timeout_ms(), members, lineage_);
}

// The links' problems that `said` does not mention.
std::string Node::link_problems(const std::string& shown) const {
  std::string text;
  for (const Seat seat : context_.self.names.places())
    if (const std::optional<LinkProblem> problem = context_.network.mesh.links().problem(seat);
        problem && shown.find(problem->why) == std::string::npos)
      text += (text.empty() && shown.ends_with('?') ? " " : "; ") + context_.self.names[seat] + ": " + problem->why;
  return text;
}

}  // namespace tg::daemon
