// A run that is cut at any moment into stretches equals the whole, bit for bit: each stretch has new members with an
// exchange that begins at its step. What they begin with is either a copy of a state that all had confirmed, as a run
// that is resumed, or what they hold, as a run whose members change: who is a step ahead goes back, who has not yet
// confirmed the state does so. Frames, pieces, gradients and idle time come in any order, drawn from the seed.
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
#include "tests/seeds.h"
#include "tests/simulation/simulator/awkward_home.h"
#include "tests/simulation/simulator/random.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {
namespace {

using daemon::Member;
using daemon::Replica;
using daemon::StateArrays;
using schema::GradientFormat;

constexpr std::size_t kNodes = 4;
constexpr std::uint64_t kSteps = 12;
constexpr std::uint64_t kBatch = 37;  // of the run: no number of members divides it

std::size_t padded_count() { return tiny_segments().padded_count(); }

// What a node keeps over all stretches.
struct Machine {
  Machine(Seat seat, const schema::JobSpec& job)
      : kernels(*kernels::available()[seat.index() % kernels::available().size()]),
        home(home_under_test(kernels)),
        tensors(home->make_kernels()),
        drawn(padded_count()),
        gradient(*home, padded_count()) {
    make_replica(job);
  }
  void make_replica(const schema::JobSpec& job) {
    replica = std::make_unique<Replica>(*home, tiny_model(), engine::slot_count(daemon::optimizer_of(job).kind),
                                        job.seed, daemon::keeps_average(job));
  }
  const kernels::Kernels& kernels;
  const std::unique_ptr<kernels::Home> home;
  const std::unique_ptr<kernels::TensorKernels> tensors;
  AlignedArray<float> drawn;
  kernels::HomeArray gradient;
  schema::FramePool pool;
  std::unique_ptr<Replica> replica;
  std::map<std::uint64_t, StateArrays> disk;  // copies of confirmed states, by step
};
using Machines = Per<Seat, std::unique_ptr<Machine>>;

// What all stretches together have done.
struct Done {
  std::size_t stretches = 0, undone = 0, confirmed_late = 0, early = 0, checkpoints = 0, evaluations = 0;
  std::size_t moved_too_early = 0;  // averages: their state is to be undone
};

// One member in one stretch.
class Node : public Member::Delegate {
 public:
  Node(const schema::JobSpec& job, const Member::Options& options, Machine& machine, Random& random, Done& done,
       bool plants_fault)
      : job_(job),
        self_(options.self),
        first_step_(options.first_step),
        machine_(machine),
        random_(random),
        done_(done),
        plants_fault_(plants_fault),
        next_confirmed_(options.first_step + 1),
        member_(options, tiny_model(), *this) {}

  void begin(const schema::Commit& choice) {
    member_.begin(choice,
                  {*machine_.home, machine_.kernels, *machine_.replica, machine_.gradient.floats(), machine_.pool});
    helper_ = member_.make_worker();
  }

  Member& member() { return member_; }
  const std::set<std::uint64_t>& checkpoints() const { return checkpoints_; }
  std::deque<std::pair<Seat, schema::SharedFrame>>& sent() { return sent_; }

  // Something that this member may do now; nothing if there is nothing.
  using Act = std::function<void()>;
  void add_acts(std::vector<Act>& acts) {
    if (!computing_.empty())
      acts.push_back([this] {
        const Act next = std::move(computing_.front());
        computing_.pop_front();
        next();
      });
    for (std::size_t i = 0; i < under_way_.size(); ++i) acts.push_back([this, i] { finish(i); });
    acts.push_back([this] { work(); });
  }

 private:
  void work() {
    const bool alone = random_.one_in(2);
    std::optional<daemon::Piece> piece =
        member_.next_piece(alone ? daemon::Taker::kOnlyThread : daemon::Taker::kIdleThread);
    if (!piece) {
      member_.use_idle_time();
    } else if (alone) {
      member_.execute(*std::move(piece));
    } else {
      under_way_.push_back({member_.origin(), *std::move(piece)});
    }
  }
  void finish(std::size_t index) {
    std::swap(under_way_[index], under_way_.back());
    auto [of, piece] = std::move(under_way_.back());
    under_way_.pop_back();
    daemon::PieceResult result = helper_->execute(piece, [&, of = of](daemon::MadeFrame total) {
      member_.on(daemon::TotalMade{of, std::move(total)});
    });
    member_.on(daemon::PieceDone{of, std::move(piece), std::move(result)});
  }

  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override {
    for (const Seat seat : to) sent_.emplace_back(seat, frame);
  }
  void train(std::uint64_t step, const daemon::Layout& layout, kernels::ConstFloats, bool early) override {
    done_.early += early ? 1 : 0;
    segments_missing_ = early ? tiny_segments().size() : 0;
    compute_ = [this, step, buckets = layout.buckets.size()] {
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
      draw_gradient(job_.seed, self_.index(), step, machine_.drawn.span());
      machine_.tensors->copy_in(std::as_bytes(machine_.drawn.span()), machine_.gradient.floats());
    }
    daemon::GradientReady event{
        {member_.members().view.number(), step}, bucket, draw_loss(job_.seed, self_.index(), step)};
    if (bucket == 0) event.statistics = draw_statistics(job_.seed, self_.index(), step);
    member_.on(event);
  }
  void evaluate(std::uint64_t step) override {
    ++done_.evaluations;
    EXPECT_EQ(machine_.replica->confirmed_steps(), step);
    computing_.push_back([this, step] {
      member_.on(daemon::Evaluated{{member_.members().view.number(), step}, {1, 2, 0.5, 1}});
    });
  }
  bool may_start_early(std::uint64_t) override { return random_.one_in(2); }
  void committed(const Member::Committed& committed) override {
    if (plants_fault_ && !committed.ends) machine_.replica->confirm(engine::average_rate(job_.ema, committed.step));
  }
  void step_begins(std::uint64_t) override {
    if (random_.one_in(12)) member_.request_checkpoint();
  }
  void confirmed(std::uint64_t step, bool checkpoint) override {
    EXPECT_EQ(machine_.replica->committed_steps(), step);
    EXPECT_EQ(machine_.replica->confirmed_steps(), step);
    EXPECT_GT(step, first_step_);
    if (checkpoint) {
      EXPECT_TRUE(checkpoints_.insert(step).second) << "told twice";
      ++done_.checkpoints;
      if (step + 1 == next_confirmed_) return;  // after its report
    }
    EXPECT_EQ(step, next_confirmed_++);
    machine_.disk[step] = daemon::copy_of(*machine_.replica, padded_count());
  }

  const schema::JobSpec& job_;
  const Seat self_;
  const std::uint64_t first_step_;
  Machine& machine_;
  Random& random_;
  Done& done_;
  const bool plants_fault_;  // the average moves at the commit
  std::uint64_t next_confirmed_;
  Member member_;
  std::unique_ptr<daemon::Worker> helper_;
  std::deque<Act> computing_;
  std::function<void()> compute_;
  std::size_t segments_missing_ = 0;
  struct Given {
    daemon::Origin of;
    daemon::Piece piece;
  };
  std::vector<Given> under_way_;
  std::deque<std::pair<Seat, schema::SharedFrame>> sent_;
  std::set<std::uint64_t> checkpoints_;
};

// The members of one stretch and what is on its way between them.
class Stretch {
 public:
  Stretch(const schema::JobSpec& job, const daemon::View& view, const std::vector<std::uint16_t>& weights,
          std::uint64_t first_step, Machines& machines, Random& random, Done& done, bool plants_fault)
      : view_(view), random_(random) {
    ++done.stretches;
    Per<Seat, std::string> names;
    for (std::size_t i = 0; i < kNodes; ++i) names.push_back("node-" + std::to_string(i));
    Per<Rank, std::uint16_t> shares;
    for (const Rank rank : places<Rank>(view.size())) shares.push_back(weights[view.seat(rank).index()]);
    const schema::Commit choice{job.exchange.value_or(schema::ExchangeKind::kDirect),
                                job.coding.value_or(schema::Coding::kEntropy), schema::kLeastWindowBytes,
                                schema::kSmallChunkParameters};
    for (const Rank rank : places<Rank>(view.size()))
      nodes_.push_back(std::make_unique<Node>(
          job,
          Member::Options{.run_key = 77,
                          .view = view,
                          .self = view.seat(rank),
                          .names = names,
                          .weights = shares,
                          .job = job,
                          .has_test_data = true,
                          .global_batch = kBatch,
                          .first_step = first_step,
                          .evaluates_first = first_step > 0 && first_step % job.evaluate_every == 0},
          *machines[view.seat(rank)], random, done, plants_fault));
    for (const auto& node : nodes_) {
      node->begin(choice);
      collect();
    }
  }

  // For so many events, or until all have finished.
  void run(std::uint64_t events) {
    for (; events > 0 && !testing::Test::HasFailure(); --events) {
      std::vector<Node::Act> acts;
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
  Node& node(Rank rank) { return *nodes_[rank]; }

 private:
  using Ends = std::pair<Rank, Rank>;
  using Link = std::deque<schema::SharedFrame>;
  void deliver(const Ends& ends, Link& link) {
    const schema::SharedFrame frame = link.front();
    link.pop_front();
    const schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
    nodes_[ends.second]->member().frame(view_.seat(ends.first), decoded.header, decoded.body, frame);
  }
  void collect() {
    for (const Rank from : nodes_.places())
      for (auto& [to, frame] : std::exchange(nodes_[from]->sent(), {}))
        links_[{from, *view_.rank(to)}].push_back(std::move(frame));
  }

  const daemon::View view_;
  Random& random_;
  Per<Rank, std::unique_ptr<Node>> nodes_;
  std::map<Ends, Link> links_;
};

struct Mode {
  const char* name;
  void (*set)(schema::JobSpec& job);
  friend void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }
};
constexpr Mode kModes[] = {
    {"ternary_momentum", [](schema::JobSpec&) {}},
    {"ternary_sgd", [](schema::JobSpec& job) { job.optimizer = OptimizerKind::kSgd; }},
    {"float32_adam",
     [](schema::JobSpec& job) {
       job.gradients = GradientFormat::kFloat32;
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

struct Run {
  Run(const Mode& mode, std::uint64_t seed, bool same_members, bool plants_fault = false)
      : random(seed), same_members_(same_members), plants_fault_(plants_fault) {
    job.seed = seed;
    job.steps = kSteps;
    job.exchange = seed % 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
    job.bucket_parameters = 1'000;
    job.chunk_parameters = 1'024;
    job.digest_every = 2;
    job.evaluate_every = 5;
    mode.set(job);
    for (const Seat seat : places<Seat>(kNodes)) {
      machines.push_back(std::make_unique<Machine>(seat, job));
      machines[seat]->disk[0] = daemon::copy_of(*machines[seat]->replica, padded_count());
      weights.push_back(static_cast<std::uint16_t>(random.between(1, 3)));
    }
    choose_members();
  }

  void choose_members() {
    seats.clear();
    while (seats.empty())
      for (const Seat seat : places<Seat>(kNodes))
        if (same_members_ || random.one_in(2)) seats.push_back(seat);
  }

  // To the end, in stretches of at most so many events of four members; fewer have fewer to a step.
  void train(std::uint64_t most_events, Done& done) {
    for (std::uint32_t number = 1; first_step < kSteps && !testing::Test::HasFailure(); ++number) {
      ReferenceView reference;
      for (const Seat seat : seats) {
        reference.seats.push_back(seat.index());
        reference.weights.push_back(weights[seat.index()]);
      }
      views_by_step.resize(first_step);
      views_by_step.resize(kSteps, reference);
      ASSERT_LT(number, 2'000u) << "nothing happens any more";
      Stretch stretch(job, daemon::View(number, seats), weights, first_step, machines, random, done, plants_fault_);
      stretch.run(random.between(1, most_events * seats.size() * seats.size() / 16));
      if (testing::Test::HasFailure()) return;
      if (plants_fault_ || random.one_in(2))
        cut_in_place(done);
      else
        cut_to_copies(stretch, done);
      if (done.moved_too_early > 0) return;
    }
  }

  // Of the states that all members have confirmed the newest; the others may be of nodes that had no part in it.
  void cut_to_copies(Stretch& stretch, Done& done) {
    std::map<std::uint64_t, std::uint64_t> digests;  // by step
    std::set<std::uint64_t> asked;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      Replica& replica = *machines[seats[i]]->replica;
      const std::uint64_t before = replica.committed_steps();
      stretch.node(Rank(i)).member().rest();
      EXPECT_EQ(replica.committed_steps(), replica.confirmed_steps());
      done.undone += replica.committed_steps() < before;
      const std::uint64_t digest = Replica::combine(replica.segment_digests());
      EXPECT_EQ(digests.emplace(replica.confirmed_steps(), digest).first->second, digest)
          << "of step " << replica.confirmed_steps();
    }
    EXPECT_LE(digests.rbegin()->first, digests.begin()->first + 1);
    first_step = digests.begin()->first;
    const StateArrays copy = machines[seats.front()]->disk.at(first_step);
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const std::set<std::uint64_t>& own = stretch.node(Rank(i)).checkpoints();
      for (const std::uint64_t step : own)
        if (step < first_step) asked.insert(step);
    }
    for (std::size_t i = 0; i < seats.size(); ++i)
      for (const std::uint64_t step : asked) EXPECT_TRUE(stretch.node(Rank(i)).checkpoints().contains(step)) << step;
    if (!same_members_) choose_members();
    for (const Seat seat : seats) {
      Machine& machine = *machines[seat];
      machine.make_replica(job);
      machine.disk[first_step] = copy;
      EXPECT_TRUE(machine.replica->restore(copy, first_step).ok());
      EXPECT_EQ(Replica::combine(machine.replica->segment_digests()), digests.begin()->second);
    }
  }

  // Of the states that the members hold the oldest: at most one step back. Some of them go on.
  void cut_in_place(Done& done) {
    first_step = UINT64_MAX;
    for (const Seat seat : seats) first_step = std::min(first_step, machines[seat]->replica->committed_steps());
    std::optional<std::uint64_t> digest;
    for (const Seat seat : seats) {
      Replica& replica = *machines[seat]->replica;
      EXPECT_LE(replica.committed_steps(), first_step + 1);
      if (replica.confirmed_steps() > first_step) {
        ++done.moved_too_early;
        return;
      }
      if (replica.committed_steps() > first_step) {
        const std::vector<std::uint64_t> before = replica.segment_digests();
        replica.undo();
        replica.redo();
        EXPECT_EQ(replica.segment_digests(), before);
        replica.undo();
        ++done.undone;
      } else if (replica.confirmed_steps() < first_step) {
        replica.confirm(engine::average_rate(job.ema, first_step));
        ++done.confirmed_late;
      }
      const std::uint64_t own = Replica::combine(replica.segment_digests());
      EXPECT_EQ(digest.value_or(own), own) << "of step " << first_step << " on seat " << seat.index();
      digest = own;
      machines[seat]->disk[first_step] = daemon::copy_of(replica, padded_count());
    }
    while (!same_members_ && seats.size() > 1 && random.one_in(2))
      seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(random.between(0, seats.size() - 1)));
  }

  void expect_equal_to_the_whole() {
    const ReferenceState reference = train_reference(job, views_by_step, kBatch);
    for (const Seat seat : seats) EXPECT_EQ(difference(reference, *machines[seat]->replica), "") << seat.index();
  }

  schema::JobSpec job;
  Random random;
  std::vector<std::uint16_t> weights;  // by seat
  Machines machines;
  std::vector<Seat> seats;
  std::uint64_t first_step = 0;
  std::vector<ReferenceView> views_by_step;

 private:
  const bool same_members_, plants_fault_;
};

class Stretches : public testing::TestWithParam<Mode> {};

void expect_the_whole(const Mode& mode, bool same_members) {
  Done done;
  for (const std::uint64_t seed : seeds(12)) {
    TG_SEED(seed);
    Run run(mode, seed, same_members);
    run.train(seed % 3 == 0 ? 60'000 : 600, done);
    run.expect_equal_to_the_whole();
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%zu stretches, %zu undone, %zu confirmed late, %zu early, %zu checkpoints, %zu evaluations\n",
              done.stretches, done.undone, done.confirmed_late, done.early, done.checkpoints, done.evaluations);
  if (seed_asked_for()) return;
  EXPECT_EQ(done.moved_too_early, 0u);
  EXPECT_GT(done.stretches, 30u);
  EXPECT_GT(done.undone, 0u);
  EXPECT_GT(done.confirmed_late, 0u);
  EXPECT_GT(done.early, 0u);
  EXPECT_GT(done.checkpoints, 0u);
  EXPECT_GT(done.evaluations, 0u);
}

TEST_P(Stretches, OfTheSameMembersEqualTheWhole) { expect_the_whole(GetParam(), true); }

TEST_P(Stretches, OfOtherMembersEqualAReplayByTheirList) { expect_the_whole(GetParam(), false); }

// What these tests would see of an average that does not wait.
TEST(Stretch, AnAverageThatMovesAtTheCommitIsCaught) {
  Done done;
  for (const std::uint64_t seed : seeds(12)) {
    TG_SEED(seed);
    Run run(kModes[0], seed, true, true);
    run.train(600, done);
    if (testing::Test::HasFailure() || done.moved_too_early > 0) break;
  }
  EXPECT_GT(done.moved_too_early, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Stretches, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tg::simulation
