#include "daemon/run/checkpointer.h"

#include <algorithm>
#include <utility>

#include "daemon/run/recorded_end.h"
#include "daemon/run/state_metadata.h"
#include "daemon/step/job_layout.h"
#include "daemon/store/artefacts.h"
#include "daemon/store/checkpoints.h"
#include "daemon/store/state_facts.h"
#include "engine/optimizer.h"
#include "kernels/base/check.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

// Writes a committed state that this member does not know to be confirmed. Others may have confirmed it; so all have a
// state in common.
void write_ahead(const RunContext& context, const Prepared& prepared, const RunRecord& record,
                 const schema::StateId& lineage_from, schema::StateId state, double ema) {
  Replica& replica = *prepared.replica;
  try {
    replica.redo();
    replica.confirm(engine::average_rate(ema, replica.committed_rounds().value()));
    state.view = record.view;
    state.step = replica.confirmed_rounds().value();
    state.digest = Replica::combine(replica.segment_digests());
  } catch (const std::exception& error) {
    return context.news.log.warning("digest-failed", {{"run", record.id}, {"error", error.what()}});
  }
  const Result<Artefacts> artefacts = artefacts_of(prepared.model, saved_arrays(arrays_of(replica), record.status),
                                                   saved_metadata(record, state, prepared));
  const Status written = artefacts ? daemon::write_checkpoint(context.storage.store.directory(record.id), state,
                                                              lineage_from, artefacts->at(kStateFile))
                                   : Status(artefacts.error());
  if (!written.ok())
    context.news.log.warning("checkpoint-failed",
                             {{"run", record.id}, {"step", state.step}, {"error", written.error().message}});
}

}  // namespace

Status Checkpointer::begin(RunRecord first, std::shared_ptr<const Prepared> prepared, bool copies) {
  record_ = std::move(first);
  lineage_from_ = record_.from;
  prepared_ = std::move(prepared);
  copies_ = copies;
  last_checkpoint_ = Clock::now();
  if (!history_) return context_.storage.store.write(record_);
  Status joined = context_.storage.store.join(record_, history_->first, history_->second);
  const std::string views = context_.storage.store.directory(record_.id) + "/" + kViewsFile;
  if (const std::optional<ViewInterval> begun = first_view_in(views, record_.status.lineage))
    lineage_from_ = begun->from;
  return joined;
}

RunRecord Checkpointer::record_with(const schema::RunStatus& status) const {
  RunRecord record = record_;
  record.status = status;
  return record;
}

// --- during the run ---

bool Checkpointer::is_checkpoint_due() const {
  const auto every = std::chrono::milliseconds(job_.checkpoint_every_ms);
  return every.count() > 0 && !saving_ && !writing_step_ && Clock::now() - last_checkpoint_ >= every;
}

void Checkpointer::write_checkpoint(const schema::StateId& state, const schema::RunStatus& status,
                                    const std::shared_ptr<LineFile>& metrics) {
  if (saving_) return;
  if (writing_step_) {
    queued_ = QueuedCheckpoint{state, status, metrics};
    return;
  }
  last_checkpoint_ = Clock::now();
  writing_step_ = state.step;
  RunRecord record = record_with(status);
  record.status.reason.clear();
  record.status.digest = state.digest;
  record.status.digest_step = state.step;
  const auto advance = [&progress = context_.news.progress] { ++progress.count; };
  const Replica& replica = *prepared_->replica;
  const StateArrays arrays = saved_arrays(
      copies_ ? copy_of(replica, prepared_->model.segments.padded_count()) : arrays_of(replica, advance), status);
  context_.storage.saver.post([&context = context_, run_key = run_key_, prepared = prepared_, arrays, state, metrics,
                               from = lineage_from_, metadata = saved_metadata(record, state, *prepared_), record] {
    metrics->flush();
    // Rows that cannot be written are lost; the state matters more.
    if (const Status lines = metrics->sync(); !lines.ok())
      context.news.log.warning("metrics-incomplete", {{"run", record.id}, {"what", lines.error().message}});
    const Result<Artefacts> artefacts = artefacts_of(prepared->model, arrays, metadata);
    Status written = artefacts ? daemon::write_checkpoint(context.storage.store.directory(record.id), state, from,
                                                          artefacts->at(kStateFile))
                               : Status(artefacts.error());
    if (written.ok()) written = context.storage.store.persist(record);
    context.hooks.on_checkpoint_written({run_key, state.step, written});
  });
}

void Checkpointer::on_view_changed(const schema::RunStatus& status, const NextView& next, const std::string& ended) {
  record_.status = status;
  ViewInterval before = interval_of(record_);
  before.ended = schema::clip_text(ended, schema::kMaxReasonBytes);
  record_.view = next.number;
  record_.member_names = next.member_names;
  record_.weights = next.weights;
  record_.from = next.from;
  std::erase_if(record_.builds, [&](const auto& one) { return !std::ranges::count(next.member_names, one.first); });
  context_.storage.saver.post([&context = context_, before = std::move(before), record = record_] {
    if (const Status written = context.storage.store.change_view(record, before); !written.ok())
      context.news.log.warning("view-not-recorded", {{"run", record.id}, {"error", written.error().message}});
  });
}

schema::StateId Checkpointer::state_id(std::uint64_t step, std::uint64_t digest) const {
  const schema::StateId& from = record_.from;
  const std::uint32_t lineage = record_.status.lineage;
  const bool begins_here = from.lineage == lineage && from.step == step;
  return {lineage, begins_here ? from.view : record_.view, step, digest};
}

void Checkpointer::on_rebuilt(const PreparedView& view, bool copies) {
  copies_ = copies_ && copies;  // a state that is being read stays as it is
  record_.own.engine_build = record_.builds[record_.node] = view.engine_build;
  record_.own.engine_choices = view.engine_choices;
}

std::optional<std::string> Checkpointer::on_checkpoint_written(const CheckpointWritten& outcome) {
  writing_step_.reset();
  if (const std::optional<QueuedCheckpoint> queued = std::exchange(queued_, std::nullopt))
    write_checkpoint(queued->state, queued->status, queued->metrics);
  const std::string id = record_.id;
  if (outcome.status.ok()) {
    context_.news.metrics.numbers().saved = static_cast<double>(unix_time_ms()) / 1000;
    context_.news.log.info("checkpoint", {{"run", id}, {"step", outcome.step}});
    return std::nullopt;
  }
  const std::string& why = outcome.status.error().message;
  context_.news.log.warning("checkpoint-failed", {{"run", id}, {"step", outcome.step}, {"error", why}});
  return context_.self.config.node + " could not write the checkpoint of step " + std::to_string(outcome.step) +
         "; the previous one is kept: " + why;
}

// --- the end ---

void Checkpointer::begin_save(const schema::RunStatus& status, const std::optional<schema::RunStatus>& ahead,
                              std::shared_ptr<LineFile> metrics, const std::shared_ptr<Timeline>& timeline) {
  saving_ = true;
  context_.news.progress.phase = schema::Phase::kSave;
  const bool traced = timeline->is_enabled();
  timeline->stop();
  record_.status = status;
  for (const std::string& name : record_.member_names)
    if (name != record_.node) record_.others[name] = {schema::SaveState::kUnknown, ""};
  const schema::StateId state = state_id(status.digest_step, status.digest);
  context_.storage.saver.post([&context = context_, run_key = run_key_, prepared = prepared_, timeline,
                               metrics = std::move(metrics), traced, state, ahead, ema = job_.ema, from = lineage_from_,
                               metadata = saved_metadata(record_, state, *prepared_), record = record_]() mutable {
    const std::string directory = context.storage.store.directory(record.id);
    const auto advance = [&context] { ++context.news.progress.count; };
    RunSaved outcome{run_key, schema::SaveState::kSaved, "", {}, nullptr};
    const auto failed = [&](const Error& error) {
      if (outcome.save == schema::SaveState::kSaved) outcome.problem = error.message;
      outcome.save = schema::SaveState::kNotSaved;
    };
    Result<Artefacts> artefacts =
        artefacts_of(prepared->model, saved_arrays(arrays_of(*prepared->replica, advance), record.status), metadata);
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
    // A file is closed before it is hashed. One that lacks rows gets no hash, so that tgctl fetch reports it.
    if (const Status whole = metrics->close(); !whole) {
      context.news.log.warning("metrics-incomplete", {{"run", record.id}, {"what", whole.error().message}});
    } else if (const Result<engine::FileMark> mark = engine::mark_of_file(directory + "/metrics.jsonl"); mark) {
      record.files["metrics.jsonl"] = *mark;
    }
    schema::MemberStatus& own = record.own_row();
    own.state = record.status.state;
    own.save = outcome.save;
    own.problem = schema::clip_text(outcome.problem, schema::kMaxProblemBytes);
    if (const Status kept = context.storage.store.persist(record); !kept) failed(kept.error());
    if (outcome.save == schema::SaveState::kSaved) {
      if (record.status.state == schema::RunState::kCompleted)
        delete_checkpoints(directory);  // other runs keep theirs for a resume
      if (ahead) {
        record.status = *ahead;
        write_ahead(context, *prepared, record, from, state, ema);
      }
    }
    outcome.files = record.files;
    context.hooks.on_saved(std::move(outcome));
  });
}

schema::Ended Checkpointer::outcome(schema::SaveState save, const std::string& problem) const {
  const schema::RunStatus& status = record_.status;
  schema::Ended own;
  own.state = status.state;
  own.reason = status.reason;
  own.since_ms = status.since_ms;
  own.held_step = status.digest_step;
  own.held_digest = status.digest;
  if (schema::is_authoritative(own.state)) {
    own.step = own.held_step;
    own.digest = own.held_digest;
  }
  own.save = save;
  own.problem = schema::clip_text(problem, schema::kMaxProblemBytes);
  return own;
}

void Checkpointer::on_saved(const RunSaved& outcome) {
  context_.news.progress.phase = schema::Phase::kIdle;  // waits for the others' outcomes
  saved_ = true;
  if (outcome.save == schema::SaveState::kSaved)
    context_.news.metrics.numbers().saved = static_cast<double>(unix_time_ms()) / 1000;
  record_.files = outcome.files;
  if (outcome.save != schema::SaveState::kSaved) unsaved_ = outcome.artefacts;
}

RunRecord Checkpointer::ended(const RunOutcome& end) {
  record_end(record_, end, context_.self.names);
  schema::MemberStatus& own = record_.own_row();
  const bool any_saved = std::any_of(end.members.begin(), end.members.end(),
                                     [](const auto& word) { return word && word->save == schema::SaveState::kSaved; });
  if (own.save == schema::SaveState::kNotSaved && !any_saved && unsaved_) {
    own.save = schema::SaveState::kInMemory;
    context_.storage.store.hold_in_memory(record_.id, *unsaved_, prepared_, prepared_->replica->bytes());
  }
  context_.news.progress.phase = schema::Phase::kIdle;
  return record_;
}

}  // namespace tg::daemon
