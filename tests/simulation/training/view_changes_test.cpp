// The members of an active run change, at any moment: some die, the others seal one after the other, go to
// the oldest state that any of them holds, and continue the run as another view, each when it is ready. What they hold
// at its end is what a replay by the list of views holds, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/seeds.h"
#include "tests/simulation/training/interval.h"

namespace tg::simulation {
namespace {

constexpr std::size_t kMaxChanges = 20;

struct ChangeCounts {
  std::size_t changes = 0, same_list = 0, alone = 0, undone = 0, confirmed_late = 0, half_moved = 0, early_frames = 0;
  std::size_t before_a_report = 0, in_a_report = 0, at_the_end = 0, not_begun = 0, stopped = 0;
  IntervalCounts of_views;
};

class ChangingRun {
 public:
  ChangingRun(const Mode& mode, std::uint64_t seed, ChangeCounts& counts)
      : job(job_of(mode, seed)), random(seed), counts_(counts) {
    if (seed % 3 == 0) job.digest_every = 1'000;  // then only a view's first step compares
    for (const Seat seat : places<Seat>(kNodes)) {
      states.push_back(std::make_unique<NodeState>(seat, job));
      weights.push_back(static_cast<std::uint16_t>(random.between(1, 3)));
      if (seat.index() < 2 || !random.one_in(3)) seats.push_back(seat);
    }
    places_.resize(kNodes);
    begin_view(1, 0);
    for (const Seat seat : seats) install(seat);
  }

  // Trains to the end; a change comes after at most so many events of four members.
  void train(std::uint64_t most_events) {
    const bool stops = random.one_in(4);
    for (std::size_t changes = 0; !over() && !testing::Test::HasFailure(); ++changes) {
      const bool ends = changes == kMaxChanges;
      // Now and then a change follows within a change: no member has begun yet.
      if (ends || !random.one_in(6))
        run(ends ? UINT64_MAX : random.between(1, most_events * seats.size() * seats.size() / 16));
      if (!ends && random.one_in(3)) run_into_a_report();
      if (stops && changes == 3) ask_to_stop();
      if (!ends && !over()) change();
    }
  }

  void run_into_a_report() {
    const auto reports = [&](Seat seat) { return node(seat).member().reporting(); };
    for (int events = 0; events < 5'000 && !over() && std::ranges::none_of(seats, reports); ++events) run(1);
    run(random.between(0, 60));
  }

  void change() {
    // Two at most die or leave, but not all; a member that has finished dies, or reports to the others that there is
    // no change.
    std::vector<Seat> promisers = seats, living = seats;
    std::uint64_t gone = random.one_in(3) ? random.between(1, 2) : 0;
    for (const Seat seat : seats) {
      if (!node(seat).member().finished()) continue;
      if (living.size() == 1 || !random.one_in(2)) return;
      lose(seat, living, promisers);
      gone = 0;
    }
    ++counts_.changes;
    count_phases();
    for (; gone > 0 && living.size() > 1; --gone) {
      const Seat victim = living[random.between(0, living.size() - 1)];
      if (random.one_in(2))
        lose(victim, living, promisers);
      else
        std::erase(living, victim);  // it promises before it goes
    }
    counts_.same_list += living.size() == seats.size();
    counts_.alone += living.size() == 1;
    // A member that promises later may do what the frames on their way let it do.
    shuffle(promisers);
    std::uint64_t start = UINT64_MAX, newest = 0;
    const std::uint64_t between_promises = random.one_in(2) ? 0 : 60, between_installs = random.one_in(2) ? 0 : 40;
    for (const Seat seat : promisers) {
      run(random.between(0, between_promises));
      is_fact_ = somebody_has_finished();
      if (over() || testing::Test::HasFailure()) return;
      for (int ballot = 0; ballot < 2; ++ballot) node(seat).member().seal();
      places_[seat].sealed_at = states[seat]->replica->committed_rounds().value();
      start = std::min(start, places_[seat].sealed_at);
      newest = std::max(newest, places_[seat].sealed_at);
    }
    EXPECT_LE(newest, start + 1);
    EXPECT_GE(start, first_step_);
    for (const Seat seat : seats) EXPECT_LE(states[seat]->replica->confirmed_rounds().value(), start) << "is lost";
    for (const Seat seat : seats) places_[seat].dead = !std::ranges::count(living, seat);
    seats = living;
    begin_view(view_ + 1, start);
    shuffle(living);
    for (const Seat seat : living) {
      run(random.between(0, between_installs));
      install(seat);
    }
  }

  void run(std::uint64_t events) {
    for (; events > 0 && !over() && !testing::Test::HasFailure(); --events) {
      std::vector<IntervalNode::Act> acts;
      for (auto& [ends, link] : links_)
        if (!link.empty()) acts.push_back([this, &ends = ends, &link = link] { deliver(ends, link); });
      for (const Seat seat : seats) {
        if (!living(seat)) continue;
        node(seat).add_acts(acts);
        if (is_new(seat) && !node(seat).member().begun()) acts.push_back([this, seat] { begin(seat); });
      }
      ASSERT_FALSE(acts.empty());
      acts[random.between(0, acts.size() - 1)]();
      collect();
    }
    if (expects_failure) return;
    for (const Seat seat : seats)
      if (living(seat)) {
        EXPECT_FALSE(node(seat).member().failed()) << node(seat).member().failed().value_or(schema::Fail()).message;
      }
  }

  void expect_equal_to_the_replay() {
    const std::uint64_t steps = states[seats.front()]->replica->committed_rounds().value();
    views_by_step.resize(steps);
    const ReferenceState reference = train_reference(job, views_by_step, kBatch);
    for (const Seat seat : seats) {
      EXPECT_EQ(states[seat]->replica->confirmed_rounds(), Round(steps));
      EXPECT_EQ(difference(reference, *states[seat]->replica), "") << seat.index();
      expect_best_is_what_it_was(*states[seat]);
    }
    counts_.stopped += steps < kSteps;
  }

  // The average of the state with the best evaluation that this node knows of, and its statistics.
  void expect_best_is_what_it_was(const NodeState& state) const {
    if (state.best.step == 0) return;
    const StateArrays& then = state.disk.at(state.best.step);
    const Replica::Best& best = state.replica->best();
    const auto expect_same = [](const engine::ReadFloats& expected, std::span<const float> values) {
      std::vector<float> read(values.size());
      EXPECT_TRUE(expected(0, read).ok());
      EXPECT_TRUE(std::ranges::equal(read, values));
    };
    expect_same(then.average ? then.average : then.parameters, best.parameters.span());
    expect_same(then.statistics, best.statistics.span());
  }

  IntervalNode& node(Seat seat) { return *places_[seat].node; }
  bool over() const {
    return is_fact_ || std::ranges::all_of(seats, [&](Seat seat) {
             const Place& place = places_[seat];
             return place.node && (place.node->member().finished() || place.node->member().failed());
           });
  }
  std::uint64_t first_step() const { return first_step_; }

  schema::JobSpec job;
  Random random;
  std::vector<std::uint16_t> weights;  // by seat
  NodeStates states;
  std::vector<Seat> seats;  // the newest view's
  std::vector<ReferenceView> views_by_step;
  bool expects_failure = false;
  std::optional<Seat> spoilt;  // its memory, between two views

 private:
  struct Place {
    std::unique_ptr<IntervalNode> node;  // in the newest view that it knows
    std::uint32_t view = 0;
    std::uint64_t sealed_at = 0;
    bool dead = false;
  };
  using Ends = std::pair<Seat, Seat>;
  using Link = std::deque<schema::SharedFrame>;

  bool living(Seat seat) const { return !places_[seat].dead && places_[seat].node != nullptr; }
  bool is_new(Seat seat) const { return places_[seat].view == view_; }
  bool somebody_has_finished() const {
    return std::ranges::any_of(
        seats, [&](Seat seat) { return living(seat) && places_[seat].node->member().finished().has_value(); });
  }
  void lose(Seat seat, std::vector<Seat>& living, std::vector<Seat>& promisers) {
    std::erase(living, seat);
    std::erase(promisers, seat);
    places_[seat].dead = true;
  }
  void shuffle(std::vector<Seat>& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.between(0, i - 1)]);
  }
  void ask_to_stop() {
    for (const Seat seat : seats)
      if (seat == seats.front() || random.one_in(2)) node(seat).member().request_stop();
  }

  // The next view is decided: each member installs it when it hears of it.
  void begin_view(std::uint32_t number, std::uint64_t start) {
    view_ = number;
    first_step_ = start;
    digest_.reset();
    ReferenceView reference;
    for (const Seat seat : seats) {
      reference.seats.push_back(seat.index());
      reference.weights.push_back(weights[seat.index()]);
    }
    views_by_step.resize(start);
    views_by_step.resize(kSteps, reference);
  }

  void install(Seat seat) {
    Place& place = places_[seat];
    if (place.view == view_) return;
    bool stops = false;
    Replica& replica = *states[seat]->replica;
    if (place.node) {
      counts_.not_begun += !place.node->member().begun();
      go_to_start(seat, replica);
      stops = place.node->member().stopping();
    }
    const std::uint64_t own = Replica::combine(replica.segment_digests());
    EXPECT_EQ(digest_.value_or(own), own) << "of step " << first_step_ << " on seat " << seat.index();
    digest_ = own;
    for (std::size_t i = 0; spoilt == seat && place.node && i < 32; ++i) replica.flip_bit(i);
    place.view = view_;
    const bool evaluates = first_step_ > 0 && (first_step_ % job.evaluate_every == 0 || first_step_ == job.steps);
    place.node = std::make_unique<IntervalNode>(
        job, options_of(job, daemon::View(view_, seats), seat, weights, first_step_, evaluates), *states[seat], random,
        counts_.of_views, false);
    if (stops) node(seat).member().request_stop();
  }
  void go_to_start(Seat seat, Replica& replica) {
    EXPECT_EQ(replica.committed_rounds().value(), places_[seat].sealed_at) << "committed after its promise";
    node(seat).end_helpers();
    const bool can_undo = replica.committed_rounds().value() > first_step_;
    const bool confirms = !can_undo && replica.confirmed_rounds() < replica.committed_rounds();
    counts_.undone += can_undo;
    counts_.confirmed_late += confirms;
    if (confirms && replica.keeps_average() && random.one_in(2)) {  // as far as idle time has come
      EXPECT_FALSE(replica.confirm(engine::average_rate(job.ema, first_step_), kernels::kBlock));
      ++counts_.half_moved;
    }
    node(seat).member().install(Round(first_step_));
    EXPECT_EQ(node(seat).member().unfit(), "");
    EXPECT_TRUE(node(seat).sent().empty()) << "sent by a sealed member";
    EXPECT_EQ(replica.committed_rounds(), Round(first_step_));
    EXPECT_EQ(replica.confirmed_rounds(), Round(first_step_));
  }

  void begin(Seat seat) { node(seat).begin(choice_of(job)); }

  void deliver(const Ends& ends, Link& link) {
    const schema::SharedFrame frame = link.front();
    link.pop_front();
    if (!living(ends.second)) return;
    const schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
    // Its sender has sent the decision before.
    const bool is_member = std::ranges::count(seats, ends.second) > 0;
    if (decoded.header.view == view_ && is_member) install(ends.second);
    const bool before_begin = is_new(ends.second) && !node(ends.second).member().begun();
    const bool taken = node(ends.second).member().on_frame(ends.first, decoded.header, decoded.body, frame);
    EXPECT_EQ(taken, decoded.header.view == places_[ends.second].view);
    counts_.early_frames += taken && before_begin;
  }
  void collect() {
    for (const Seat from : places<Seat>(kNodes)) {
      if (!living(from)) continue;
      const bool sealed = node(from).member().is_sealed();
      for (auto& [to, frame] : std::exchange(node(from).sent(), {})) {
        EXPECT_FALSE(sealed) << "sent by a sealed member";
        links_[{from, to}].push_back(std::move(frame));
      }
    }
  }
  void count_phases() {
    for (const Seat seat : seats) {
      const Member& member = node(seat).member();
      const Replica& replica = *states[seat]->replica;
      if (!member.reporting()) continue;
      (replica.confirmed_rounds() < replica.committed_rounds() ? counts_.before_a_report : counts_.in_a_report) += 1;
      counts_.at_the_end += replica.committed_rounds() == Round(kSteps);
    }
  }

  ChangeCounts& counts_;
  Per<Seat, Place> places_;
  std::uint32_t view_ = 0;  // that is decided
  bool is_fact_ = false;    // a member has finished, and reports it to the others
  std::uint64_t first_step_ = 0;
  std::optional<std::uint64_t> digest_;  // the state's that the view begins with
  std::map<Ends, Link> links_;
};

class ViewChanges : public testing::TestWithParam<Mode> {};

TEST_P(ViewChanges, AtAnyMomentEqualAReplayByTheirList) {
  ChangeCounts counts;
  for (const std::uint64_t seed : seeds(60)) {
    TG_SEED(seed);
    ChangingRun run(GetParam(), seed, counts);
    run.train(seed % 3 == 0 ? 2'000 : 400);
    run.expect_equal_to_the_replay();
    if (testing::Test::HasFailure()) return;
  }
  std::printf(
      "%zu changes (%zu of the same list, %zu to one member): %zu undone, %zu confirmed late (%zu half moved), "
      "%zu at a barrier, %zu in a report (%zu at the end), %zu not begun, %zu frames before the begin; %zu early, "
      "%zu evaluations, %zu stopped\n",
      counts.changes, counts.same_list, counts.alone, counts.undone, counts.confirmed_late, counts.half_moved,
      counts.before_a_report, counts.in_a_report, counts.at_the_end, counts.not_begun, counts.early_frames,
      counts.of_views.early, counts.of_views.evaluations, counts.stopped);
  if (seed_asked_for()) return;
  for (const std::size_t seen :
       {counts.same_list, counts.alone, counts.undone, counts.confirmed_late, counts.before_a_report,
        counts.in_a_report, counts.at_the_end, counts.not_begun, counts.early_frames, counts.of_views.early,
        counts.of_views.evaluations, counts.of_views.better, counts.of_views.worse, counts.stopped})
    EXPECT_GT(seen, 0u);
}

// Digests are compared at the first gate of a view, whatever the job says: before anything is committed in it.
TEST(ViewChange, AStateThatDiffersIsNamedBeforeItsFirstStep) {
  ChangeCounts counts;
  for (const std::uint64_t seed : seeds(30)) {
    TG_SEED(seed);
    ChangingRun run(kModes[0], 3 * seed, counts);  // without digests in between
    run.run(run.random.between(0, 2'000));
    if (run.over()) continue;
    run.expects_failure = true;
    run.spoilt = run.seats.back();
    run.change();
    if (run.seats.size() < 2 || run.seats.back() != run.spoilt || run.first_step() == kSteps) continue;
    run.run(100'000);
    for (const Seat seat : run.seats) {
      const Member& member = run.node(seat).member();
      ASSERT_TRUE(member.failed()) << seat.index();
      EXPECT_NE(member.failed()->message.find("replicas differ"), std::string::npos) << member.failed()->message;
      EXPECT_EQ(run.states[seat]->replica->committed_rounds(), Round(run.first_step()));
    }
    ++counts.stopped;
  }
  if (!seed_asked_for()) {
    EXPECT_GT(counts.stopped, 5u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ViewChanges, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tg::simulation
