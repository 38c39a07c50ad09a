// A run on this node, from preparing to its end: turns events into steps. It owns the trainer (compute thread), the
// exchange core and its worker; the replica it trains; the live numbers that status shows. All on the node's thread.
//
//   prepared -> vote;  begin -> step 0 -> ... -> commit -> (evaluation -> reports of all) -> next step ... -> last
//   reports -> finished
//
// It decides nothing about membership: outcomes (failed, stopping, finished) are taken by the Node and told to
// Membership.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exchange/exchange.h"
#include "daemon/exchange/worker.h"
#include "daemon/mesh/mesh.h"
#include "daemon/node/event_queue.h"
#include "daemon/run/run_store.h"
#include "daemon/run/trainer.h"
#include "engine/optimizer.h"
#include "schema/job.h"

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
};

class ActiveRun {
 public:
  ActiveRun(const RunContext& context, RunIdentity identity, schema::JobSpec job);

  // --- events ---
  schema::Vote on_prepared(Result<std::shared_ptr<const Prepared>> result);
  Status begin(schema::ExchangeKind exchange);
  void on_bucket_ready(const BucketReady& event);
  void on_evaluated(const Evaluated& event);
  void on_compute_failed(const std::string& message);
  void on_frame(Rank from, const schema::Frame& frame, std::shared_ptr<const void> keep);
  void request_stop();
  void tick();
  // The node's thread had nothing to do for so long while these members were waited for.
  void waited(const std::vector<Rank>& ranks, double seconds);

  // --- outcomes ---
  struct Outcome {
    std::optional<schema::Fail> failed;
    bool stopping = false;
    std::optional<schema::RunState> finished;
  };
  Outcome take_outcome();

  // Writes the committed state and the record with its final state; nothing is lost if it fails half-way: the error
  // says what.
  Status save(schema::RunState state, const std::string& reason);

  // --- state ---
  const RunIdentity& identity() const { return identity_; }
  bool begun() const { return begun_; }
  Exchange::Waiting waiting() const;
  schema::PlanReply plan_reply(schema::ExchangeKind exchange) const;
  std::uint64_t step_timeout_ms() const;  // max(floor, 10 x median step)

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {  // what follows a commit before the next step
    std::uint64_t step = 0;
    bool last = false;
    bool stopped = false;
  };

  Plan plan(schema::ExchangeKind exchange, bool ternary) const;
  void begin_step();
  void drain();
  void on_commit(const CommitStep& commit);
  void start_report(bool last, bool stopped, bool evaluate);
  void send_report(const engine::EvaluationCounts& counts);
  void on_report(Rank from, std::uint64_t step, const schema::Report& report);
  void finish_reports();
  void fail(schema::Fail cause);
  void fail(Rank about, const std::string& phase, const std::string& message);
  void send_frame(const std::vector<Rank>& to, const schema::SharedFrame& frame);
  void write_metrics(bool evaluated);
  void publish(bool now);
  void show_stopping();
  void note_digest(const std::vector<std::uint64_t>& digests);
  std::uint64_t global_batch() const { return schema::resolved_global_batch(job_, context_.names.size()); }

  const RunContext& context_;
  const RunIdentity identity_;
  const schema::JobSpec job_;
  std::shared_ptr<const Prepared> prepared_;
  RunRecord record_;
  std::vector<std::string> segment_names_;
  engine::OptimizerOptions optimizer_;
  Plan plan_, float_plan_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Worker> worker_;

  bool begun_ = false;
  Outcome outcome_;
  std::optional<Pending> pending_;
  std::map<std::uint64_t, std::vector<std::optional<schema::Report>>> reports_;  // by step; two at most

  // live numbers
  schema::RunStatus status_;
  std::vector<double> wait_seconds_;  // by rank
  std::deque<double> step_seconds_;   // the last ones
  std::deque<double> step_sent_bytes_;
  Clock::time_point step_started_{}, published_{}, progress_seen_{}, ticked_{};
  std::uint64_t progress_count_ = 0;
  std::uint64_t sent_bytes_before_ = 0, sent_bytes_step_ = 0;
  StepTraffic traffic_;  // of the last step
  std::ofstream metrics_;

  std::unique_ptr<Trainer> trainer_;  // last: its thread goes first
};

}  // namespace tg::daemon
