// A run on this node, from preparing to its end: joins what decides (Member), what computes (Trainer), what is measured
// before a start (LinkProbe) and what is shown and kept (RunNumbers, Timeline, RunRecord). All on the
// node's thread; those of Trainer and Crew report through its queue.
//
//   prepared and link measured -> vote;  begin -> Member's steps and reports ... -> finished or failed
//
// It decides nothing about membership: outcomes (failed, stopping, finished) are taken by the Node and told to
// Membership.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/mesh/mesh.h"
#include "daemon/mesh/probe/link_probe.h"
#include "daemon/node/event_queue.h"
#include "daemon/run/run_numbers.h"
#include "daemon/run/straggler.h"
#include "daemon/step/member.h"
#include "daemon/step/threads/crew.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_store.h"
#include "schema/options/job.h"

namespace tg::daemon {

// What a node lends its runs; outlives them.
struct RunContext {
  const schema::NodeConfig& config;
  std::vector<std::string> names;  // members, by rank
  const kernels::Kernels& kernels;
  Mesh& mesh;
  schema::FramePool& pool;
  RunStore& store;
  Progress& progress;
  const Fault& fault;
  Log& log;
  EventQueue& queue;
  std::uint64_t threads = 1;
  std::string build;
  std::uint64_t threads_for(const schema::JobSpec& job) const { return job.threads ? job.threads : threads; }
};

class ActiveRun {
 public:
  ActiveRun(const RunContext& context, RunIdentity identity, schema::JobSpec job);

  // --- before it begins ---
  void on_prepared(Result<std::shared_ptr<const Prepared>> result);
  void on_probe_reply(Rank from, const schema::ProbeReply& reply);
  // Once, when everything that a vote says is known.
  std::optional<schema::Vote> take_vote();
  Status begin(const schema::Commit& choice);

  // --- events ---
  void on_bucket_ready(const BucketReady& event);
  void on_evaluated(const Evaluated& event);
  void on_total_made(const MadeFrame& total);
  void on_piece_done(const Piece& piece, PieceResult result);
  void on_compute_failed(const std::string& message);
  void on_frame(Rank from, const schema::Frame& frame, std::shared_ptr<const void> keep);
  void request_stop();
  void tick();
  // One piece of the exchange's work on this thread, and as many as the helpers take on theirs; false if there is none
  // now.
  bool work();
  // Events to be taken before the next piece: one makes one piece ready at most, and there should be one for each
  // thread.
  std::size_t events_at_once() const { return crew_ ? crew_->size() + 1 : 1; }
  // The node's thread had nothing to do for so long while these members were waited for.
  void waited(const Exchange::Waiting& waiting, std::chrono::steady_clock::time_point since);

  // --- outcomes ---
  struct Outcome {
    std::optional<schema::Fail> failed;
    bool stopping = false;
    std::optional<schema::RunState> finished;
  };
  Outcome outcome() const;

  // Writes the committed state and the record with its final state; nothing is lost if it fails half-way: the error
  // says what.
  Status save(schema::RunState state, const std::string& reason);

  // --- state ---
  const RunIdentity& identity() const { return identity_; }
  const schema::JobSpec& job() const { return job_; }
  bool begun() const { return member_ && member_->begun(); }
  Exchange::Waiting waiting() const;
  schema::PlanReply plan_reply(const schema::Commit& choice) const;  // facts; what is foreseen stands in no run
  std::uint64_t step_timeout_ms() const;                             // max(floor, 10 x median step)

 private:
  using Clock = std::chrono::steady_clock;

  Member::Hooks hooks();
  void make_crew();
  schema::Vote vote() const;
  void on_committed(const Member::Committed& committed);
  void on_reported(const std::optional<Member::Evaluation>& evaluation);
  void before_step(std::uint64_t step);
  void send_frame(const std::vector<Rank>& to, const schema::SharedFrame& frame);
  void publish(bool now);
  void watch_stragglers();
  void show_stopping();
  void note_digests(const std::vector<std::uint64_t>& digests);
  double seconds() const;
  std::uint64_t global_batch() const { return schema::resolved_global_batch(job_, context_.names.size()); }

  const RunContext& context_;
  const RunIdentity identity_;
  const schema::JobSpec job_;
  std::optional<Result<std::shared_ptr<const Prepared>>> preparation_;
  std::shared_ptr<const Prepared> prepared_;
  LinkProbe probe_;
  bool voted_ = false;
  std::vector<std::string> segment_names_;
  std::unique_ptr<Member> member_;
  RunNumbers numbers_;
  RunRecord record_;
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();  // shared with their threads
  Clock::time_point published_{}, progress_seen_{}, ticked_{}, committed_{};
  std::uint64_t progress_count_ = 0;
  StragglerWatch stragglers_;

  std::unique_ptr<Trainer> trainer_;  // last but one: its thread goes before what it uses
  std::unique_ptr<Crew> crew_;        // last: its threads read the trainer's gradients
};

}  // namespace tg::daemon
