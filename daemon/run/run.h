// A run on this node, from preparing to its end: owns who decides a step (Member), what computes (Trainer, Crew), and
// what is shown and kept (RunNumbers, Timeline, RunRecord). Node's thread; Trainer and Crew post their events to the
// node, which hands them straight to the member.
//
//   Candidate: prepared, link measured -> vote;  begin -> Member's steps and reports ... -> finished or failed
//   -> begin_save ... context.tell.saved() -> ended: the verdict is recorded
//
// It decides nothing about membership: outcomes (failed, stopping, finished) are taken by the Node and told to
// Membership.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/run_end.h"
#include "daemon/membership/run_identity.h"
#include "daemon/run/candidate.h"
#include "daemon/run/run_context.h"
#include "daemon/run/run_numbers.h"
#include "daemon/run/standstill.h"
#include "daemon/step/member.h"
#include "daemon/step/threads/crew.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_record.h"
#include "schema/options/job.h"

namespace tg::daemon {

class Run : private Member::Delegate {
 public:
  Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view);
  ~Run() override;

  // --- before it begins ---
  void prepared(Result<std::shared_ptr<const Prepared>> result);
  // It takes the probe's answers and makes the vote.
  Candidate& candidate() { return candidate_; }
  Status begin(const schema::Commit& choice);

  // --- while it goes on ---
  // It takes frames and events of a step; nullptr before the run is prepared.
  Member* member() { return member_.get(); }
  // The exchange's work: what the helpers take, or one piece on this thread; false if there is none now.
  bool work() { return goes_on() && crew_ && crew_->work(*member_); }
  // Events to be taken before that: one makes one piece ready at most, more pieces than this are not handed out.
  std::size_t events_at_once() const { return crew_ ? crew_->most_pieces() : 1; }
  Waiting waiting() const { return goes_on() ? member_->waiting() : Waiting{}; }
  // The node's thread had nothing to do since then while these members were waited for.
  void waited(const Waiting& waiting, std::chrono::steady_clock::time_point since);
  void request_stop();
  void tick();

  // --- its end ---
  // No step is taken any more. Writes the committed state and what a crash from then on leaves, on the saver's thread;
  // context.tell.saved() tells.
  void begin_save(schema::RunState state, const std::string& reason);
  // What this member tells the others then.
  schema::Ended own_end(schema::SaveState save, const std::string& problem) const;
  void saved(const RunSaved& outcome);
  void checkpointed(const CheckpointWritten& outcome);
  // The verdict: records it. A state that nobody could save stays in memory.
  Status ended(const RunEnd& end);

  // --- state ---
  const RunIdentity& identity() const { return identity_; }
  const schema::JobSpec& job() const { return job_; }
  bool begun() const { return member_ && member_->begun(); }
  bool goes_on() const { return begun() && !saving_; }
  bool writes_state() const { return saving_ && !saved_; }  // the last one
  std::uint64_t step_timeout_ms() const;                    // max(floor, 10 x median step)
  engine::ModelOptions model() const;                       // of its data. Prepared
  // What this choice means: facts, no predictions. Prepared.
  schema::StartReply facts(const schema::Commit& choice) const;

 private:
  using Clock = std::chrono::steady_clock;

  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override;
  void train(std::uint64_t step, const Layout& layout, kernels::ConstFloats parameters, bool early) override;
  void segment_ready(std::size_t segment) override;
  void evaluate(std::uint64_t step) override;
  void reached(schema::Phase phase, std::uint64_t step) override;
  void step_begins(std::uint64_t step) override;
  bool may_start_early(std::uint64_t step) override;
  void computed(const GradientReady& last) override;
  void committed(const Member::Committed& committed) override;
  void confirmed(std::uint64_t step, bool checkpoint) override;
  void reported(const std::optional<Member::Evaluation>& evaluation) override;
  void state_digests(const std::vector<std::uint64_t>& digests) override;

  RunRecord first_record() const;
  Status check_memory_of(const schema::StartReply& facts);
  std::map<std::string, std::string> metadata() const;
  void write_checkpoint_if_due();
  Status begin_member(const schema::Commit& choice);
  void read_digests();
  void show_stopping();
  void log_progress(bool ends);
  void log_damaged();
  void publish(bool now);

  const RunContext& context_;
  const RunIdentity identity_;
  const schema::JobSpec job_;
  const View view_;
  const std::uint64_t global_batch_;
  const std::vector<schema::MemberShare> shares_;  // of it, by rank
  Candidate candidate_;
  std::shared_ptr<const Prepared> prepared_;
  std::unique_ptr<Member> member_;
  RunNumbers numbers_;
  RunRecord record_;
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();  // shared with their threads
  Clock::time_point published_{}, logged_{}, checkpointed_{};
  std::size_t damaged_logged_ = 0, damaged_met_ = 0;
  Clock::time_point computed_{}, evaluating_{};  // the own gradient was whole; an evaluation began
  bool copies_ = true;                           // checkpoints are written from a copy; else training waits
  bool writes_checkpoint_ = false;               // now, beside training
  bool ends_ = false;                            // a report follows the last commit
  bool saving_ = false, saved_ = false;
  std::shared_ptr<const Artefacts> unsaved_;  // of the last state, if it could not be saved
  Standstill standstill_;

  std::unique_ptr<Trainer> trainer_;  // last but one: its thread goes before what it uses
  std::unique_ptr<Crew> crew_;        // last: its threads read the trainer's gradients
};

}  // namespace tg::daemon
