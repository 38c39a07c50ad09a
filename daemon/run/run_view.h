// What lasts for a view on one member: who takes part and with which shares, who decides a step (Member), the helpers
// that compute the exchange (WorkerPool), and the view's rates. It carries out what the member asks for: frames go to
// the mesh, orders to the run's compute thread, news to the journal, states to the keeper, all of which outlive it.
// Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/run_identity.h"
#include "daemon/run/journal.h"
#include "daemon/run/keeper.h"
#include "daemon/run/run_context.h"
#include "daemon/run/run_numbers.h"
#include "daemon/run/standstill.h"
#include "daemon/step/member.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/step/threads/worker_pool.h"
#include "schema/options/job.h"

namespace tg::daemon {

class RunView : private Member::Delegate {
 public:
  struct Parts {  // of the run
    const RunContext& context;
    const RunIdentity& identity;
    const schema::JobSpec& job;
    Trainer& trainer;
    Journal& journal;
    Keeper& keeper;
    std::shared_ptr<Timeline> timeline;
  };
  RunView(const Parts& parts, View view);
  ~RunView() override;

  // Frames of the others may come from now on, even before the commit.
  // evaluates_first: an evaluation of the state that it begins with is due.
  void prepared(std::shared_ptr<const Prepared> prepared, bool evaluates_first);
  // Prepared, not begun: what is decided of the view. True if its members have got other weights than those that this
  // one is prepared for.
  bool settle(View decided);
  // The first step begins.
  Status begin(const schema::Commit& choice);

  // Takes frames and events of a step. Prepared.
  Member& member() { return *member_; }
  bool is_prepared() const { return member_ != nullptr; }
  bool begun() const { return member_ && member_->begun(); }
  // The exchange's work: what the helpers take, or one task on this thread; false if there is none now.
  bool work();
  // Events to be taken before that: one makes one task ready at most, more tasks than this are not handed out.
  std::size_t events_at_once() const { return workers_ ? workers_->max_tasks() : 1; }
  // The node's thread had nothing to do since then while these members were waited for.
  void waited(const Waiting& waiting, std::chrono::steady_clock::time_point since);
  void tick();
  // Nothing has got done here for a while, and nobody is waited for: whatever it does does not come back. Why, or "".
  std::string stuck() const;
  // The helpers are gone: nothing of the view is executed any more, on any thread but the compute thread.
  void end_helpers() { workers_.reset(); }
  std::uint64_t step_timeout_ms() const;  // max(floor, 10 x median step)

  const View& view() const { return view_; }
  const std::vector<schema::MemberShare>& shares() const { return shares_; }  // of the global batch, by rank
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
  void state_digests(const std::vector<std::uint64_t>& digests) override;

  void count_shares();

  const Parts run_;
  View view_;
  const Rank self_;
  std::vector<schema::MemberShare> shares_;
  std::optional<RunNumbers> numbers_;
  std::shared_ptr<const Prepared> prepared_;
  std::unique_ptr<Member> member_;
  Standstill standstill_;
  Clock::duration stood_still_{};        // at the last tick
  std::unique_ptr<WorkerPool> workers_;  // last: its threads use the member's workers
};

}  // namespace tg::daemon
