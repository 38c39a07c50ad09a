// The node: one thread that takes every event, asks Membership what follows, and applies it to the mesh, the run and
// the control server. The place to start reading the daemon.
//
//   mesh thread ----frames-------+                               +--> Membership (who takes part) --> start, end of Run
//   control thread --calls-------+--> EventQueue --> Node::run --+--> Member of the Run (steps)   --> mesh, threads
//   compute thread --gradients---+                               +--> DryRun (--dry-run, plan)    --> ControlServer
//   exchange helpers --results---+                               +--> Examiner (doctor)          --> ControlServer
//
// Each event goes straight to its owner; only the node checks whether it belongs to the current run. Events come first,
// and between two of them the thread runs one task of the exchange (Run::work), so that neither the link nor a peer's
// frame waits for long; helpers execute tasks beside it. Constructed and connected in main.cpp; run() returns after
// ShutDown was posted and handled.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
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
#include "daemon/node/misclassification_search.h"
#include "daemon/node/other_lineages.h"
#include "daemon/node/peer_file.h"
#include "daemon/node/pending_run.h"
#include "daemon/node/resumption.h"
#include "daemon/node/service_manager.h"
#include "daemon/run/run.h"
#include "kernels/base/log.h"

namespace tg::daemon {

class Node {
 public:
  Node(const RunContext& context, EventQueue& queue, ControlServer& control, ServiceManager& service_manager,
       PeerFile& peer_file);

  // Returns after ShutDown. The calling thread becomes the node's thread.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kNoClient = 0;  // the token of a start without a request
  void process_events();
  void process_early_frames();
  void tick();
  void forward_votes();
  void check_links(std::uint64_t now);
  void check_disk(std::uint64_t now);
  void publish_metrics();
  void log_view_change(bool begun);
  bool is_busy() const;             // no run can be resumed now
  std::string busy_reason() const;  // why no measurement may begin; "" = it may

  // --- events ---
  void on_event(FrameArrived& event);
  void on_event(ConnectionChanged& event);
  void on_event(PeerLost& event);
  void on_event(PrepareProgress& event);
  void on_event(ForeignHeartbeat& event);
  void on_event(ControlCall& event);
  void on_event(RunPrepared& event);
  void on_event(RunRebuilt& event);
  void on_event(RunStepEvent& event);
  void on_event(RunSaved& event);
  void on_event(CheckpointWritten& event);
  void on_event(VoteWritten& event);
  void on_event(RecordWritten& event);
  void on_event(StatesFound& event);
  void on_event(HistoryRead& event);
  void on_event(MisclassificationsFound& event) { search_.on_result(event); }
  void on_event(PeerLinesRead& event);
  void on_event(ShutDown& event);
  void start(std::uint64_t token, const schema::StartRequest& request);
  void resume(std::uint64_t token, const schema::ResumeRequest& request);
  void propose(std::uint64_t token, const RunIdentity& identity);
  Result<std::vector<Seat>> seats_without(const std::vector<std::string>& names) const;
  void try_auto_resume(std::uint64_t now);
  void stop(std::uint64_t token, const schema::StopRequest& request);
  void leave(std::uint64_t token, const schema::LeaveRequest& request);
  void examine(std::uint64_t token, const schema::ExamineRequest& request);
  Status check_orphaned_threads() const;
  void restore_run(const RunRecord& record);
  void restore_kept_vote(const std::string& id);
  void publish_last_run();
  void watch_members(const std::string& run);
  void report_failure(const schema::Fail& cause);
  void save_unsaved();
  void on_snapshot_chunk(Seat from, const schema::FrameHeader& header, const schema::SnapshotChunk& chunk);
  void log_run(const std::string& id);
  void on_lower_lineage(const schema::Heartbeat& beat, const RunRecord& record, const Held& own);
  void set_aside(const RunRecord& record);

  // --- what Membership has decided ---
  void apply_actions();  // until membership and the run have no more actions
  void report_outcome();
  void apply(SendFrame& action);
  void apply(ListSavedStates& action);
  void apply(PrepareRun& action);
  void apply(BeginRun& action);
  void apply(DropRun& action);
  void apply(SaveRun& action);
  void apply(EndRun& action);
  void apply(RecordEnd& action);
  void apply(AnswerStart& action);
  void apply(RestartProposal& action);
  void apply(RequestStop& action);
  void apply(Seal& action);
  void apply(WriteVote& action);
  void apply(InstallView& action);
  void apply(LeaveView& action);
  void apply(QuiesceRun& action);
  void apply(ReadHistory& action);
  void apply(SendSnapshotChunks& action);
  void apply(NoteJoin& action);
  void apply(ReleaseRun& action);
  void apply(ReceiveSnapshot& action);
  void apply(JoinRun& action);
  std::string link_problems(const std::string& shown) const;
  std::string service_status() const;

  bool is_current(std::uint64_t key) const { return run_ && run_->identity().run_key == key; }
  std::uint64_t& rejected(Rejection reason) {
    return context_.news.metrics.numbers().rejected[static_cast<std::size_t>(reason)];
  }

  const RunContext& context_;
  EventQueue& queue_;
  ControlServer& control_;
  ServiceManager& service_manager_;
  PeerFile& peer_file_;
  Membership membership_;
  std::unique_ptr<Run> run_;
  ExchangeChoice choice_;  // the current run's
  DryRun dry_run_;
  Resumption resumption_;
  AutoResume auto_resume_;
  PendingRun pending_;  // as status shows it
  Examiner examiner_;
  MisclassificationSearch search_;
  OtherLineages lineages_;
  Lineage lineage_;  // the current run's
  struct Contradiction {
    std::uint64_t key = 0;  // the run's that ends for it
    std::string why;
    bool by_order = false;
    std::uint32_t view = 0;  // the other view, where that is of the same lineage
  } contradiction_;
  BurstMeter bursts_;
  DisconnectGrace disconnect_grace_;
  ViewLinks view_links_;
  std::deque<FrameArrived> early_frames_;  // they wait until the decision of their view is written
  std::size_t early_bytes_ = 0;            // at most what one peer may have in the queue
  std::uint64_t dropped_frames_ = 0;       // step frames of another run or view; logged at the end of a run
  bool shutting_down_ = false, stopped_ = false;
  std::map<std::uint64_t, std::string> voted_runs_;  // run ids by run key: their votes are written here
  std::map<std::string, RunRecord> unrecorded_;      // ended runs', until they are on the disk or shown
  std::optional<ListSavedStates> unlisted_;          // such a run's
  std::string disk_problem_;                         // "" = none
  std::optional<InstallView> unlogged_change_;       // its first step has not begun
  std::optional<RunRebuilt> early_rebuilt_;          // waits until the view may begin
  std::uint64_t not_before_ms_ = 0;                  // the earliest beginning of the current view
  std::uint64_t last_tick_ms_ = 0, step_timeout_ms_ = 0, last_cleanup_ms_ = 0;
};

}  // namespace tg::daemon
