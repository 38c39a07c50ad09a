// One interval of a run: members that begin at a step with the state that they hold, and train until the interval is
// cut. Frames, tasks, gradients and idle time come in any order, drawn from the seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "daemon/step/member.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/simulator/random.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {

using daemon::Member;
using daemon::Replica;
using daemon::StateArrays;

inline constexpr std::size_t kNodes = 4;
inline constexpr std::uint64_t kBatch = 37;  // a run's global batch: no number of members divides it

inline constexpr std::uint64_t kSteps = 12;

struct Mode {
  const char* name;
  void (*set)(schema::JobSpec& job);
  friend void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }
};
inline constexpr Mode kModes[] = {
    {"ternary_momentum", [](schema::JobSpec&) {}},
    {"ternary_sgd", [](schema::JobSpec& job) { job.optimizer = OptimizerKind::kSgd; }},
    {"float32_adam",
     [](schema::JobSpec& job) {
       job.gradients = schema::GradientFormat::kFloat32;
       job.optimizer = OptimizerKind::kAdam;
     }},
    {"own_scalers",
     [](schema::JobSpec& job) {
       job.scaler_sharing = schema::ScalerSharing::kNone;
       job.exchange = std::nullopt;
     }},
    {"float_steps_without_average",
     [](schema::JobSpec& job) {
       job.float_steps = 5;
       job.ema = 0;
     }},
};

inline schema::JobSpec job_of(const Mode& mode, std::uint64_t seed) {
  schema::JobSpec job;
  job.seed = seed;
  job.steps = kSteps;
  job.exchange = seed % 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
  job.bucket_parameters = 1'000;
  job.chunk_parameters = 1'024;
  job.digest_every = 2;
  job.evaluate_every = 5;
  mode.set(job);
  return job;
}

// The choice of exchange for every view.
inline schema::Commit choice_of(const schema::JobSpec& job) {
  return {job.exchange.value_or(schema::ExchangeKind::kDirect), job.coding.value_or(schema::Coding::kEntropy),
          schema::kMinWindowBytes, schema::kSmallChunkParameters};
}

// A member of a view that begins where so many steps are committed. weights: of all seats.
inline Member::Options options_of(const schema::JobSpec& job, const daemon::View& view, Seat self,
                                  const std::vector<std::uint16_t>& weights, std::uint64_t first_step,
                                  bool evaluates_first) {
  Member::Options options;
  options.run_key = 77;
  Per<Rank, std::uint16_t> of_members;
  for (const Seat seat : view.seats()) of_members.push_back(weights[seat.index()]);
  options.view = daemon::View(view.number(), view.seats(), of_members);
  options.self = self;
  for (std::size_t i = 0; i < kNodes; ++i) options.names.add_absent("node-" + std::to_string(i));
  options.job = job;
  options.has_test_data = true;
  options.global_batch = kBatch;
  options.first_round = Round(first_step);
  options.evaluates_first = evaluates_first;
  return options;
}

inline std::size_t padded_count() { return tiny_segments().padded_count(); }

// What a node keeps over all intervals.
struct NodeState {
  NodeState(Seat seat, const schema::JobSpec& job)
      : kernels(*kernels::available()[seat.index() % kernels::available().size()]),
        space(space_under_test(kernels)),
        tensors(space->make_kernels()),
        drawn(padded_count()),
        gradient(*space, padded_count()) {
    make_replica(job);
  }
  void make_replica(const schema::JobSpec& job) {
    replica = std::make_unique<Replica>(*space, tiny_model(), engine::slot_count(daemon::optimizer_of(job).kind),
                                        job.seed, daemon::keeps_average(job));
    replica->make_room_for_best();
  }
  const kernels::Kernels& kernels;
  const std::unique_ptr<kernels::MemorySpace> space;
  const std::unique_ptr<kernels::TensorKernels> tensors;
  AlignedArray<float> drawn;
  kernels::MemoryArray gradient;
  schema::FramePool pool;
  std::unique_ptr<Replica> replica;
  daemon::BestEvaluation best;                // as the news of this node are
  std::map<std::uint64_t, StateArrays> disk;  // copies of confirmed states, by step
};
using NodeStates = Per<Seat, std::unique_ptr<NodeState>>;

// What all intervals together have counts.
struct IntervalCounts {
  std::size_t intervals = 0, undone = 0, confirmed_late = 0, early = 0, checkpoints = 0, evaluations = 0;
  std::size_t better = 0, worse = 0;  // evaluations than the best one before
  std::size_t moved_too_early = 0;    // averages: their state is to be undone
};

// One member in one interval.
class IntervalNode : public Member::Delegate {
 public:
  IntervalNode(const schema::JobSpec& job, const Member::Options& options, NodeState& state, Random& random,
               IntervalCounts& counts, bool plants_fault)
      : job_(job),
        self_(options.self),
        first_step_(options.first_round.value()),
        state_(state),
        random_(random),
        counts_(counts),
        plants_fault_(plants_fault),
        next_confirmed_(options.first_round.value() + 1),
        member_(options, tiny_model(), *this) {}

  void begin(const schema::Commit& choice) {
    member_.begin(choice,
                  {*state_.space, state_.kernels, *state_.replica, state_.gradient.floats(), state_.pool, state_.best});
    helper_ = member_.make_worker();
  }

  Member& member() { return member_; }
  const std::set<std::uint64_t>& checkpoints() const { return checkpoints_; }
  std::deque<std::pair<Seat, schema::SharedFrame>>& sent() { return sent_; }

  // Ends them as a worker pool does: what is in flight is executed to its end, what waits is dropped, and no result is
  // reported.
  void end_helpers() {
    while (!in_flight_.empty())
      if (random_.one_in(2))
        finish(0);
      else
        in_flight_.pop_back();
  }

  // Something that this member may do now; nothing if there is nothing.
  using Act = std::function<void()>;
  void add_acts(std::vector<Act>& acts) {
    if (!computing_.empty())
      acts.push_back([this] {
        const Act next = std::move(computing_.front());
        computing_.pop_front();
        next();
      });
    for (std::size_t i = 0; i < in_flight_.size(); ++i) acts.push_back([this, i] { finish(i); });
    acts.push_back([this] { work(); });
  }

 private:
  void work() {
    if (held_ && !random_.one_in(8)) {
      member_.use_idle_time();
      return;
    }
    if (held_) {
      EXPECT_EQ(state_.replica->committed_rounds(), Round(held_->step));
      EXPECT_EQ(Replica::combine(state_.replica->segment_digests()), held_->digest) << "while it was read";
      held_.reset();
    }
    const bool alone = random_.one_in(2);
    std::optional<daemon::Task> task =
        member_.next_task(alone ? daemon::ThreadRole::kOnlyThread : daemon::ThreadRole::kIdleThread);
    if (!task) {
      if (random_.one_in(8)) member_.use_idle_time();  // a node may have none in a whole step
    } else if (alone) {
      member_.execute(*std::move(task));
    } else {
      in_flight_.push_back({member_.origin(), *std::move(task)});
    }
  }
  void finish(std::size_t index) {
    std::swap(in_flight_[index], in_flight_.back());
    auto [of, task] = std::move(in_flight_.back());
    in_flight_.pop_back();
    daemon::TaskResult result = helper_->execute(task, [&, of = of](daemon::MadeFrame total) {
      member_.on_event(daemon::TotalMade{of, std::move(total)});
    });
    member_.on_event(daemon::TaskDone{of, std::move(task), std::move(result)});
  }

  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override {
    for (const Seat seat : to) sent_.emplace_back(seat, frame);
  }
  void train(Step step, const daemon::Layout& layout, kernels::ConstFloats, bool early) override {
    counts_.early += early ? 1 : 0;
    segments_missing_ = early ? tiny_segments().size() : 0;
    compute_ = [this, step = step.value(), buckets = layout.buckets.size()] {
      for (std::size_t bucket = 0; bucket < buckets; ++bucket)
        computing_.push_back([this, step, bucket] { ready(step, bucket); });
    };
    if (!early) compute_();
  }
  void segment_ready(std::size_t) override {
    if (--segments_missing_ == 0) compute_();
  }
  void ready(std::uint64_t step, std::size_t bucket) {
    if (bucket == 0) {
      draw_gradient(job_.seed, self_.index(), step, state_.drawn.span());
      state_.tensors->copy_in(std::as_bytes(state_.drawn.span()), state_.gradient.floats());
    }
    daemon::GradientReady event{
        {member_.members().view.number(), Step(step)}, bucket, draw_loss(job_.seed, self_.index(), step)};
    if (bucket == 0) event.statistics = draw_statistics(job_.seed, self_.index(), step);
    member_.on_event(event);
  }
  void evaluate(Step step) override {
    ++counts_.evaluations;
    EXPECT_EQ(state_.replica->confirmed_rounds(), Round(step.value()));
    computing_.push_back([this, step] {
      member_.on_event(
          daemon::Evaluated{{member_.members().view.number(), step}, {1 + step.value() * 3 % 11, 16, 0.5, 1}});
    });
  }
  void reported(const std::optional<Member::Evaluation>& evaluation) override {
    if (!evaluation) return;
    const daemon::BestEvaluation before = state_.best;
    state_.best.update(static_cast<double>(evaluation->counts.correct) / static_cast<double>(evaluation->counts.total),
                       evaluation->step);
    counts_.better += before.step > 0 && state_.best.step != before.step;
    counts_.worse += state_.best.step != evaluation->step;
  }
  bool may_start_early(Step) override { return random_.one_in(2); }
  void committed(const Member::Committed& committed) override {
    if (plants_fault_ && !committed.ends) state_.replica->confirm(engine::average_rate(job_.ema, committed.step));
  }
  void step_begins(Step) override {
    if (random_.one_in(12)) member_.request_checkpoint();
  }
  void confirmed(Step confirmed, bool checkpoint) override {
    const std::uint64_t step = confirmed.value();
    EXPECT_EQ(state_.replica->committed_rounds(), Round(step));
    EXPECT_EQ(state_.replica->confirmed_rounds(), Round(step));
    EXPECT_GT(step, first_step_);
    if (checkpoint) {
      EXPECT_TRUE(checkpoints_.insert(step).second) << "reported twice";
      ++counts_.checkpoints;
      held_ = Held{step, Replica::combine(state_.replica->segment_digests())};
      if (step + 1 == next_confirmed_) return;  // after its report
    }
    EXPECT_EQ(step, next_confirmed_++);
    state_.disk[step] = daemon::copy_of(*state_.replica, padded_count());
  }

  const schema::JobSpec& job_;
  const Seat self_;
  const std::uint64_t first_step_;
  NodeState& state_;
  Random& random_;
  IntervalCounts& counts_;
  const bool plants_fault_;  // the average moves at the commit
  std::uint64_t next_confirmed_;
  Member member_;
  std::unique_ptr<daemon::Worker> helper_;
  std::deque<Act> computing_;
  std::function<void()> compute_;
  std::size_t segments_missing_ = 0;
  struct Given {
    daemon::Origin of;
    daemon::Task task;
  };
  std::vector<Given> in_flight_;
  std::deque<std::pair<Seat, schema::SharedFrame>> sent_;
  std::set<std::uint64_t> checkpoints_;
  struct Held {  // until this state has been read no task is asked for
    std::uint64_t step, digest;
  };
  std::optional<Held> held_;
};

// The members of one interval and what is on its way between them.
class Interval {
 public:
  Interval(const schema::JobSpec& job, const daemon::View& view, const std::vector<std::uint16_t>& weights,
           std::uint64_t first_step, NodeStates& states, Random& random, IntervalCounts& counts, bool plants_fault)
      : view_(view), random_(random) {
    ++counts.intervals;
    const bool evaluates_first = first_step > 0 && first_step % job.evaluate_every == 0;
    for (const Rank rank : places<Rank>(view.size()))
      nodes_.push_back(std::make_unique<IntervalNode>(
          job, options_of(job, view, view.seat(rank), weights, first_step, evaluates_first), *states[view.seat(rank)],
          random, counts, plants_fault));
    for (const auto& node : nodes_) {
      node->begin(choice_of(job));
      collect();
    }
  }

  // Runs for so many events, or until all have finished.
  void run(std::uint64_t events) {
    for (; events > 0 && !testing::Test::HasFailure(); --events) {
      std::vector<IntervalNode::Act> acts;
      for (auto& [ends, link] : links_)
        if (!link.empty()) acts.push_back([this, &ends = ends, &link = link] { deliver(ends, link); });
      for (const auto& node : nodes_) node->add_acts(acts);
      acts[random_.between(0, acts.size() - 1)]();
      collect();
      const auto over = [](const auto& node) { return node->member().finished() || node->member().failed(); };
      if (std::ranges::all_of(nodes_, over)) break;
    }
    for (const auto& node : nodes_)
      EXPECT_FALSE(node->member().failed()) << node->member().failed().value_or(schema::Fail()).message;
  }
  IntervalNode& node(Rank rank) { return *nodes_[rank]; }

 private:
  using Ends = std::pair<Rank, Rank>;
  using Link = std::deque<schema::SharedFrame>;
  void deliver(const Ends& ends, Link& link) {
    const schema::SharedFrame frame = link.front();
    link.pop_front();
    const schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
    nodes_[ends.second]->member().on_frame(view_.seat(ends.first), decoded.header, decoded.body, frame);
  }
  void collect() {
    for (const Rank from : nodes_.places())
      for (auto& [to, frame] : std::exchange(nodes_[from]->sent(), {}))
        links_[{from, *view_.rank(to)}].push_back(std::move(frame));
  }

  const daemon::View view_;
  Random& random_;
  Per<Rank, std::unique_ptr<IntervalNode>> nodes_;
  std::map<Ends, Link> links_;
};

}  // namespace tg::simulation
