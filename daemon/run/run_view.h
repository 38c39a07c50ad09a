// The parts of a run that last for a view on one member: its members and shares, the Member that decides a step, the
// helpers that compute the exchange (WorkerPool), and the view's rates. It executes the member's requests: frames go to
// the mesh, orders to the run's compute thread, events to the run reporter, states to the checkpointer, all of which
// outlive it. Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/run_identity.h"
#include "daemon/run/checkpointer.h"
#include "daemon/run/run_context.h"
#include "daemon/run/run_numbers.h"
#include "daemon/run/run_reporter.h"
#include "daemon/run/stall_detector.h"
#include "daemon/step/member.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/step/threads/worker_pool.h"
#include "schema/options/job.h"

namespace tg::daemon {

class RunView : private Member::Delegate {
 public:
  struct Parts {  // the run's
    const RunContext& context;
    const RunIdentity& identity;
    const schema::JobSpec& job;
    Trainer& trainer;
    RunReporter& reporter;
    Checkpointer& checkpointer;
    std::shared_ptr<Timeline> timeline;
  };
  RunView(const Parts& parts, View view);
  ~RunView() override;

  // Accepts the others' frames from now on, even before the commit. evaluates_first: the first state is to be
  // evaluated.
  void on_prepared(std::shared_ptr<const Prepared> prepared, bool evaluates_first);
  // Prepared, not begun: takes the view that was decided. Returns true if its weights differ from the prepared ones.
  bool settle(View decided);
  // Begins the first step.
  Status begin(const schema::Commit& choice);

  // The owner of a step's frames and events. Prepared.
  Member& member() { return *member_; }
  bool is_prepared() const { return member_ != nullptr; }
  bool begun() const { return member_ && member_->begun(); }
  // Hands tasks of the exchange to the helpers, or executes one on this thread; false if there is none.
  bool work();
  // The number of events to take before work(): an event makes at most one task ready.
  std::size_t max_events() const { return workers_ ? workers_->max_tasks() : 1; }
  // The node's thread was idle since then and waited for these members.
  void on_waited(const Waiting& waiting, std::chrono::steady_clock::time_point since);
  void tick();
  // The reason if this node itself makes no progress, and waits for no member; else "".
  std::string stall_reason() const;
  // Ends the helpers: afterwards only the compute thread executes anything for the view.
  void stop_helpers() { workers_.reset(); }
  std::uint64_t step_timeout_ms() const;  // max(floor, 10 x median step)

  const View& view() const { return view_; }
  const std::vector<schema::MemberShare>& shares() const { return shares_; }  // by rank
  std::uint64_t own_samples() const { return shares_[self_.index()].samples; }
  const Per<Rank, std::string>& member_names() const { return member_->members().names; }  // prepared
  RunNumbers& numbers() { return *numbers_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override;
  void train(Step step, const Layout& layout, kernels::ConstFloats parameters, bool early) override;
  void segment_ready(std::size_t segment) override;
  void evaluate(Step step) override;
  void reached(schema::Phase phase, Step step) override;
  void step_begins(Step step) override;
  bool may_start_early(Step step) override;
  void computed(const GradientReady& last) override;
  void committed(const Member::Committed& committed) override;
  void confirmed(Step step, bool checkpoint) override;
  void reported(const std::optional<Member::Evaluation>& evaluation) override;
  void digests_compared(Step step, const std::vector<std::uint64_t>& digests) override;

  void update_shares();

  const Parts run_;
  View view_;
  const Rank self_;
  std::vector<schema::MemberShare> shares_;
  std::optional<RunNumbers> numbers_;
  std::shared_ptr<const Prepared> prepared_;
  std::unique_ptr<Member> member_;
  StallDetector stall_detector_;
  Clock::duration stalled_for_{};        // as of the last tick
  std::unique_ptr<WorkerPool> workers_;  // last: its threads use the member's workers
};

}  // namespace tg::daemon
