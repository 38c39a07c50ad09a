// A member of a run, from its first step to its last report: Exchange decides, Workers compute, Replica holds the
// state. Real runs and the simulator drive this one class; it knows no clock, socket or thread.
//
//   begin -> train -> gradients of buckets, frames of peers -> commit -> ... -> end
//              `-> all hold the state that the step begins with -> confirmed
//   where an evaluation is due, at the last step, at a stop and for a hold:
//     commit -> all have reached it -> confirmed -> (evaluation) -> reports of all -> the next step, or the end
//
// A held member begins no step before go_on(), whatever it believes of the others: all hold one confirmed state.
//
// A commit is this member's, and may be undone while it is not confirmed. What cannot be taken back is done once a
// state is confirmed: the average moves, news are told, a checkpoint is made. Moving the average of a large model takes
// as long as reading it from memory, so it is done in parts when this thread has nothing else to do; what is left of
// it, before the next commit.
//
// A view may end at any moment, with what is in flight: seal() says so, and install() takes the state to where the
// next view begins, which another Member does.
//
// Events go in through on_event() and on_frame(), each passed straight to the deciding part; requests to the outside
// come out through the Delegate, called while an event is handled. Heavy work comes in tasks that the caller asks for,
// so that it handles frames in between: next_task(), then execute() on this thread, or on another thread with a Worker
// of its own, whose results come back as events, in any order. Everything is called by one thread.
//
// The next forward pass may begin before the commit: train(step + 1, early) is called as soon as the last bucket of the
// own gradient was handed in and every member's flags are known to ask for neither stop nor evaluation; from then on
// segment_ready tells of each segment of the next state that is final. A step that fails is dropped with it. Tensor
// kernels may throw wherever they are called from here: that is as if EngineFailed had come.
//
// Here ranks become seats: inside, a member is a rank of the view; the world knows seats.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exchange/barrier.h"
#include "daemon/exchange/exchange.h"
#include "daemon/exchange/reports.h"
#include "daemon/step/early_end.h"
#include "daemon/step/job_layout.h"
#include "daemon/step/step_event.h"
#include "daemon/step/worker.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "engine/optimizer.h"
#include "kernels/memory_space.h"
#include "schema/options/job.h"
#include "schema/options/node_list.h"
#include "schema/step.h"

namespace tg::daemon {

class Member {
 public:
  struct Options {
    std::uint64_t run_key = 0;
    View view;
    Seat self;
    schema::NodeList names;  // all nodes'
    schema::JobSpec job;
    bool has_test_data = false;      // without it evaluations are left out
    std::uint64_t global_batch = 0;  // the run's
    Round first_round = {};          // committed rounds of the state that it begins with; confirmed already
    bool evaluates_first = false;    // that state's evaluation is due; all members say the same
  };
  struct Committed {
    std::uint64_t step = 0;  // committed steps: news are integers
    double loss_sum = 0;     // over the step's global batch
    float learning_rate = 0;
    StepTraffic traffic;
    bool ends = false;  // a report follows: an evaluation, the last step, a stop
  };
  struct Evaluation {
    std::uint64_t step = 0;
    engine::EvaluationCounts counts;  // all members' together
  };
  // The surroundings of a member. Called on the member's thread; must outlive it.
  class Delegate {
   public:
    virtual ~Delegate() = default;
    virtual void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) = 0;
    // Forward and backward of a step, with these parameters; early: segment by segment as segment_ready tells.
    virtual void train(Step step, const Layout& layout, kernels::ConstFloats parameters, bool early) = 0;
    virtual void segment_ready(std::size_t segment) = 0;
    virtual void evaluate(Step step) = 0;
    // Faults are injected here: it may not return; before a step it may spoil the committed state.
    virtual void reached(schema::Phase, Step /*step*/) {}
    virtual void step_begins(Step /*step*/) {}
    virtual bool may_start_early(Step /*step*/) { return true; }
    // News.
    virtual void computed(const GradientReady& /*last*/) {}  // this node's gradient is whole: what it took
    virtual void committed(const Committed&) {}
    // All members hold this state, and the average is its own; a state that was begun with is not told of. checkpoint:
    // a member asks all to keep a copy of it; it stays unchanged until another task is asked for. Once for each state,
    // and once more where a checkpoint is asked for only after its report.
    virtual void confirmed(Step /*step*/, bool /*checkpoint*/) {}
    virtual void reported(const std::optional<Evaluation>&) {}  // all members' reports, after a confirmed step
    virtual void digests_compared(Step, const std::vector<std::uint64_t>& /*by segment*/) {}  // all members have them
  };
  // Takes frames at once: those of the others may come before begin(). The model outlives it.
  Member(Options options, const engine::Model& model, Delegate& delegate);

  // Not begun: what is decided of the view, whose members may have got other weights.
  void settle(const View& decided);

  // The first step begins. All of it outlives the member and its workers.
  struct Resources {
    kernels::MemorySpace& space;  // where gradients and replica live
    const kernels::CodecKernels& codec;
    Replica& replica;
    kernels::ConstFloats gradients;
    schema::FramePool& pool;
    BestEvaluation best = {};  // so far in the run
  };
  void begin(const schema::Commit& choice, const Resources& resources);

  // --- events ---
  // StepFrame, Scalers, Chunk, Credit, Reached or Report of this run. False if it is of another view: it changes
  // nothing.
  bool on_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                std::shared_ptr<const void> keep);
  // Those of another view change nothing: the order or task was abandoned.
  void on_event(const GradientReady& event);
  void on_event(const TotalMade& event);
  void on_event(const TaskDone& event);
  void on_event(const Evaluated& event);
  void on_event(const EngineFailed& event);
  void request_stop();
  void request_checkpoint();  // saves the state that our next step frame announces
  void request_quiesce();     // all members pause after the step of our next step frame
  // The most senior member's word: the hold is over, or will be as soon as it begins.
  void release();
  void fail(schema::Fail cause);

  // --- the end of the view ---
  // From now on nothing is committed in this view: events and frames change nothing, no task is given out, and those
  // in flight end without effect. What the replica says of its rounds stays.
  void seal() { sealed_ = true; }
  // Sealed, and no other thread executes a task any more: goes to the state that the next view begins with. A member
  // one step ahead of it undoes that step; a member at it confirms it, which is reported as usual. Any other state is a
  // bug. Where the tensor kernels throw, unfit() says so.
  void install(Round start);

  // --- tasks ---
  // What can be done now by this thread, if anything; done once on_event(TaskDone) was told.
  std::optional<Task> next_task(ThreadRole role);
  // Carries a task out on this thread; says how many bytes it sent.
  std::uint64_t execute(Task task);
  // When there is no task and no event: a part of what can wait. False if nothing does.
  bool use_idle_time();
  // For another thread; uses what begin() was given, for as long as that lives.
  std::unique_ptr<Worker> make_worker();

  // --- outcomes ---
  // No step is taken any more: the replica goes to the newest state that is confirmed as far as this member knows,
  // which is told as usual.
  void rest();
  const std::optional<schema::Fail>& failed() const { return failed_; }
  const std::string& unfit() const { return unfit_; }  // why this node computes no more: its own engine; "" if it does
  bool stopping() const { return stopping_; }
  std::optional<schema::RunState> finished() const { return finished_; }
  const std::string& finish_reason() const { return finish_reason_; }  // ended before its last step without a stop
  bool quiesced() const { return held_; }                              // with all others, whose reports are in

  // --- state ---
  bool begun() const { return worker_ != nullptr; }
  bool is_sealed() const { return sealed_; }
  bool can_go_back() const;  // by install(), from what is committed
  bool reporting() const { return pending_.has_value(); }
  Step step() const;                                                  // in progress, or the last one
  Origin origin() const { return {members_.view.number(), step()}; }  // the origin of tasks handed out now
  const Members& members() const { return members_; }
  Waiting waiting() const;

 private:
  struct Pending {  // what follows a commit before the next step
    Round round;
    bool last = false, stopped = false, evaluates = false;
    bool holds = false;
    bool confirmed = false;  // all have reached it
  };

  const Layout& layout_of(Step step) const {
    return step.value() < options_.job.float_steps ? *layouts_.of_float_steps : layouts_.layout;
  }
  // Wraps calls of the tensor kernels: if they fail this node is unfit(), and lives on.
  template <class Call>
  void guarded(Call call) {
    try {
      call();
    } catch (const std::exception& error) {
      on_event(EngineFailed{origin(), error.what()});
    }
  }
  bool is_ours(const Origin& of) const { return of.view == members_.view.number(); }
  bool counts(const Origin& of) const { return !sealed_ && is_ours(of); }  // what comes of it
  void begin_step();
  void start_early();
  void task_done(const Measure& task, const TaskResult& result);
  void task_done(const Contribute& task, const TaskResult& result);
  void task_done(const Reduce& task, const TaskResult& result) { on_applied(task.chunk, result.broken); }
  void task_done(const Apply& task, const TaskResult& result) { on_applied(task.chunk, result.broken); }
  void on_applied(std::size_t chunk, const std::optional<Rank>& broken);
  void apply_actions();
  void apply(const Send& action);
  void apply(const ConfirmState& action);
  void apply(const CommitRound& action);
  void apply(const FailRun& action) { fail(action.cause); }
  void confirm(std::size_t most_elements);
  void finish_barrier();
  void report(const engine::EvaluationCounts& counts);
  void finish_reports();
  void send(const std::vector<Rank>& to, const schema::SharedFrame& frame);
  Round committed_rounds() const;

  const Options options_;
  const engine::SegmentTable& segments_;
  const Members members_;
  Delegate& delegate_;
  const engine::OptimizerOptions optimizer_;
  Exchange exchange_;
  Barrier barrier_;
  Reports reports_;

  // From begin() on.
  std::optional<Resources> resources_;
  Layouts layouts_;
  SharedStep shared_;
  std::unique_ptr<Worker> worker_;  // the calling thread's; its buffers come with its first task

  // The current step.
  float learning_rate_ = 0;
  StepTraffic traffic_;
  std::vector<std::uint64_t> digests_;      // the committed state's, if they are to be compared
  std::size_t in_flight_ = 0;               // tasks
  std::vector<std::size_t> open_chunks_;    // by segment: chunks that are not applied
  bool early_ = false;                      // the next step's forward has been told to begin
  std::optional<ConfirmState> confirming_;  // the committed state is confirmed; the average has not moved whole
  std::optional<Pending> pending_;
  bool held_ = false;

  bool sealed_ = false;
  std::optional<schema::Fail> failed_;
  std::string unfit_;
  bool stopping_ = false;
  std::optional<schema::RunState> finished_;
  std::string finish_reason_;
  BestEvaluation best_;
};

}  // namespace tg::daemon
