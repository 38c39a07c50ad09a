// A member of a run, from its first step to the last report: Exchange, Worker and Replica wired together. Real runs and
// the simulator drive this one class; it knows no clock, socket or thread.
//
//   begin -> Train(0) -> gradients of buckets, frames of peers -> commit -> (evaluation -> reports of all) -> ... ->
//   end
//
// Events go in; what the world has to do comes out through the hooks, called while an event is taken. Heavy work comes
// in pieces that the caller asks for, so that it takes frames in between: next_piece(), a Worker's carry_out, made()
// for the total that it hands out on its way, done(). Pieces are independent of each other: several may be under way at
// once, each with a Worker and a thread of its own, and their results may come back in any order. work() is a piece on
// the caller's thread. Everything else is called by one thread.
//
// The next forward pass may begin before the commit: train(step + 1, early) is called as soon as the last bucket of the
// own gradient was handed in and every member's flags are known to ask for neither stop nor evaluation; from then on
// segment_ready tells of each segment of the next state that is final. A step that fails is dropped with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exchange/exchange.h"
#include "daemon/step/job_plan.h"
#include "daemon/step/worker.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "schema/options/job.h"

namespace tg::daemon {

class Member {
 public:
  struct Options {
    std::vector<std::string> names;  // by rank
    Rank self = 0;
    std::uint64_t run_key = 0;
    schema::JobSpec job;
    std::vector<std::string> segment_names;
    bool has_test_data = false;  // else evaluations are left out
  };
  struct Committed {
    std::uint64_t step = 0;  // committed steps
    double loss_sum = 0;     // of the step's global batch
    float learning_rate = 0;
    StepTraffic traffic;
    bool ends = false;  // a report follows: an evaluation, the last step, a stop
  };
  struct Evaluation {
    std::uint64_t step = 0;
    engine::EvaluationCounts counts;  // of all members
  };
  struct Hooks {
    std::function<void(const std::vector<Rank>& to, schema::SharedFrame)> send;
    // Forward and backward of a step, with these parameters; early: segment by segment as segment_ready tells.
    std::function<void(std::uint64_t step, const Plan& plan, kernels::ConstFloats parameters, bool early)> train;
    std::function<void(std::size_t segment)> segment_ready;
    std::function<void(std::uint64_t step)> evaluate;
    std::function<void(schema::Phase, std::uint64_t step)> reached;  // fault injection; may not return
    std::function<void(std::uint64_t step)> before_step;             // the state is still the committed one
    std::function<bool(std::uint64_t step)> may_start_early;
    std::function<void(const Committed&)> committed;
    std::function<void(const std::optional<Evaluation>&)> reported;        // all reports of a committed step are in
    std::function<void(const std::vector<std::uint64_t>&)> state_digests;  // by segment, whenever they were computed
  };
  // Takes frames at once: those of the others may come before begin().
  Member(Options options, Hooks hooks);

  // home: where gradients and replica live. They and the rest outlive the member and its workers. The first step
  // begins.
  void begin(const schema::Commit& choice, kernels::Home& home, const kernels::CodecKernels& codec,
             const engine::SegmentTable& segments, Replica& replica, kernels::ConstFloats gradients,
             schema::FramePool& pool);

  // --- events ---
  // StepFrame, Scalers, Chunk, Credit or Report of this run.
  void frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
             std::shared_ptr<const void> keep);
  void bucket_ready(std::uint64_t step, std::size_t bucket, double loss_sum);
  void evaluated(std::uint64_t step, const engine::EvaluationCounts& counts);
  void request_stop();
  void fail(schema::Fail cause);
  void fail(Rank about, const std::string& phase, const std::string& message);

  // --- work ---
  // What can be done now, if anything.
  std::optional<Piece> next_piece();
  // The total of a Reduce under way.
  void made(const MadeFrame& total);
  // A piece has been carried out.
  void done(const Piece& piece, PieceResult result);
  // Carries out a piece on this thread, done() included; says what it sent.
  std::uint64_t carry_out(const Piece& piece);
  // The next piece, if there is any.
  bool work();
  // Of another thread; uses what begin() was given, for as long as that lives.
  std::unique_ptr<Worker> make_worker();
  std::size_t bucket_of(const Piece& piece) const;  // of a piece of this step

  // --- outcomes ---
  const std::optional<schema::Fail>& failed() const { return failed_; }
  bool stopping() const { return stopping_; }
  std::optional<schema::RunState> finished() const { return finished_; }

  // --- state ---
  bool begun() const { return worker_ != nullptr; }
  bool reporting() const { return pending_.has_value(); }
  std::uint64_t step() const { return exchange_.step(); }
  Exchange::Waiting waiting() const;
  const Plan& plan() const { return plans_.plan; }
  std::uint64_t pieces() const { return pieces_; }  // of work done and frames taken: progress
  std::size_t pieces_under_way() const { return under_way_; }

 private:
  struct Pending {  // what follows a commit before the next step
    std::uint64_t step = 0;
    bool last = false;
    bool stopped = false;
  };

  const Plan& plan_of(std::uint64_t step) const {
    return step < options_.job.float_steps ? *plans_.of_float_steps : plans_.plan;
  }
  void begin_step();
  void start_early();
  void drain();
  void act(const SendFrame& action);
  void act(const CommitStep& action);
  void act(const FailRun& action) { fail(action.cause); }
  void done(const Measure& work, const PieceResult& result);
  void done(const Contribute& work, const PieceResult& result);
  void done(const Reduce& work, const PieceResult& result) { applied(work.chunk, result.broken); }
  void done(const Apply& work, const PieceResult& result) { applied(work.chunk, result.broken); }
  void applied(std::size_t chunk, const std::optional<Rank>& broken);
  void chunk_applied(std::size_t chunk);
  void start_report(bool last, bool stopped, bool evaluate);
  void send_report(const engine::EvaluationCounts& counts);
  void on_report(Rank from, std::uint64_t step, const schema::Report& report);
  void finish_reports();
  std::vector<std::uint64_t> digests();

  const Options options_;
  const Hooks hooks_;
  const engine::OptimizerOptions optimizer_;
  Exchange exchange_;
  Plans plans_;
  kernels::Home* home_ = nullptr;
  const kernels::CodecKernels* codec_ = nullptr;
  const engine::SegmentTable* segments_ = nullptr;
  Replica* replica_ = nullptr;
  kernels::ConstFloats gradients_;
  schema::FramePool* pool_ = nullptr;
  SharedStep shared_;
  std::unique_ptr<GradientStatistics> statistics_;
  std::unique_ptr<Worker> worker_;  // the calling thread's
  std::size_t under_way_ = 0;       // pieces
  StepTraffic traffic_;             // of this step

  std::optional<schema::Fail> failed_;
  bool stopping_ = false;
  std::optional<schema::RunState> finished_;

  float learning_rate_ = 0;
  std::size_t buckets_ready_ = 0;         // of this step: their gradient is complete
  std::vector<std::size_t> open_chunks_;  // by segment: chunks of this step that are not applied
  bool early_ = false;                    // the next step's forward has been told to begin
  std::optional<Pending> pending_;
  std::map<std::uint64_t, std::vector<std::optional<schema::Report>>> reports_;  // by step; two at most
  std::uint64_t pieces_ = 0;
};

}  // namespace tg::daemon
