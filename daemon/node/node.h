// The node: one thread that takes every event, asks Membership what follows, and carries it out on the mesh, the run
// and the control server. The place to start reading the daemon.
//
//   mesh thread ----frames-------+                               +--> Membership (who takes part) --> start, end of Run
//   control thread --calls-------+--> EventQueue --> Node::run --+--> Member of the Run (steps)   --> mesh, threads
//   compute thread --gradients---+                               +--> DryRun (--dry-run, plan)    --> ControlServer
//   exchange helpers --results---+                               +--> Examiner (doctor)          --> ControlServer
//
// Each event goes straight to who decides; whether it is the current run's is checked here and nowhere else. Events
// come first, and between two of them one task of the exchange's work (Run::work), so that neither the link nor a
// peer's frame waits for long; helpers execute tasks beside it. Constructed and connected in main.cpp; run() returns
// after ShutDown was posted and carried out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/control_server.h"
#include "daemon/doctor/examiner.h"
#include "daemon/membership/disconnect_grace.h"
#include "daemon/membership/membership.h"
#include "daemon/membership/view_links.h"
#include "daemon/mesh/probe/burst_meter.h"
#include "daemon/node/auto_resume.h"
#include "daemon/node/dry_run.h"
#include "daemon/node/event_queue.h"
#include "daemon/node/mistake_search.h"
#include "daemon/node/pending_run.h"
#include "daemon/node/resumption.h"
#include "daemon/node/service_manager.h"
#include "daemon/run/run.h"
#include "kernels/base/log.h"

namespace tg::daemon {

class Node {
 public:
  Node(const RunContext& context, EventQueue& queue, ControlServer& control, ServiceManager& service_manager);

  // Until shut down. The calling thread becomes the node's thread.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kNobody = 0;  // the token of a call that nobody waits for
  void take_events();
  void tick();
  void take_votes();
  void look_at_links(std::uint64_t now);
  void publish_metrics();
  void tell_change(bool begun);
  bool busy() const;            // nothing can be measured now
  std::string at_work() const;  // why nothing that disturbs may be done, "" = it may

  // --- events ---
  void on(FrameArrived& event);
  void on(ConnectionChanged& event);
  void on(PeerLost& event);
  void on(PeerPrepares& event);
  void on(PeerBeats& event);
  void on(ControlCall& event);
  void on(RunPrepared& event);
  void on(RunFitted& event);
  void on(StepHappened& event);
  void on(RunSaved& event);
  void on(CheckpointWritten& event);
  void on(StatesFound& event);
  void on(HistoryRead& event);
  void on(MistakesFound& event) { mistakes_.on_found(event); }
  void on(ShutDown& event);
  void start(std::uint64_t token, const schema::StartRequest& request);
  void resume(std::uint64_t token, const schema::ResumeRequest& request);
  void propose(std::uint64_t token, const RunIdentity& identity);
  Result<std::vector<Seat>> all_but(const std::vector<std::string>& names) const;
  void resume_by_itself(std::uint64_t now);
  void stop(std::uint64_t token, const schema::StopRequest& request);
  void leave(std::uint64_t token, const schema::LeaveRequest& request);
  void examine(std::uint64_t token, const schema::ExamineRequest& request);
  Status nothing_left_behind() const;
  void remember(const RunRecord& record);
  void show_last_run();
  void watch(const std::string& run);
  void cannot_go_on(const schema::Fail& cause);
  void save_unsaved();
  void on_snapshot_chunk(Seat from, const schema::FrameHeader& header, const schema::SnapshotChunk& slice);
  void log_run(const std::string& id);

  // --- what Membership has decided ---
  void carry_out_all();  // until neither membership nor the run has anything left to say
  void take_outcome();
  void carry_out(SendFrame& action);
  void carry_out(FindStates& action);
  void carry_out(PrepareRun& action);
  void carry_out(BeginRun& action);
  void carry_out(DropRun& action);
  void carry_out(SaveRun& action);
  void carry_out(EndRun& action);
  void carry_out(RecordEnd& action);
  void carry_out(AnswerStart& action);
  void carry_out(RestartProposal& action);
  void carry_out(RequestStop& action);
  void carry_out(Freeze& action);
  void carry_out(WriteVote& action);
  void carry_out(InstallView& action);
  void carry_out(LeaveView& action);
  void carry_out(QuiesceRun& action);
  void carry_out(ReadHistory& action);
  void carry_out(SendSnapshotChunks& action);
  void carry_out(NoteJoin& action);
  void carry_out(ReleaseRun& action);
  void carry_out(ReceiveSnapshot& action);
  void carry_out(JoinRun& action);
  std::string absent_problems(const std::string& said) const;
  std::string service_status() const;

  bool is_current(std::uint64_t key) const { return run_ && run_->identity().run_key == key; }
  std::uint64_t& rejected(Rejection reason) {
    return context_.news.metrics.numbers().rejected[static_cast<std::size_t>(reason)];
  }

  const RunContext& context_;
  EventQueue& queue_;
  ControlServer& control_;
  ServiceManager& service_manager_;
  Membership membership_;
  std::unique_ptr<Run> run_;
  ExchangeChoice choice_;  // of the current run
  DryRun dry_run_;         // what a start would do
  Resumption resumption_;
  AutoResume auto_resume_;
  PendingRun pending_;  // what status shows before it begins
  Examiner examiner_;   // doctor
  MistakeSearch mistakes_;
  BurstMeter bursts_;
  DisconnectGrace disconnect_grace_;
  ViewLinks view_links_;
  std::uint64_t dropped_frames_ = 0;  // of steps, but of another run or view; logged with the end of a run
  bool leaving_ = false, stopped_ = false;
  std::map<std::uint64_t, std::string> voted_in_;  // runs whose votes are written here, by key
  std::optional<InstallView> changed_;             // not in the log yet: its first step has not begun
  std::optional<RunFitted> fitted_;                // kept until the view may begin
  std::uint64_t begins_ms_ = 0;                    // the present view, not before
  std::uint64_t last_tick_ms_ = 0, step_timeout_ms_ = 0, last_store_ms_ = 0;
};

}  // namespace tg::daemon
