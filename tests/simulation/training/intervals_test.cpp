// A run that is cut at any moment into intervals equals the whole, bit for bit: each interval has new members with an
// exchange that begins at its step. What they begin with is either a copy of a state that all had confirmed, as a run
// that is resumed, or what they hold, as a run whose members change: a member that is a step ahead goes back, one
// that has not yet confirmed the state does so.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "tests/seeds.h"
#include "tests/simulation/training/interval.h"

namespace tg::simulation {
namespace {

struct CutRun {
  CutRun(const Mode& mode, std::uint64_t seed, bool same_members, bool plants_fault = false)
      : random(seed), same_members_(same_members), plants_fault_(plants_fault) {
    job = job_of(mode, seed);
    for (const Seat seat : places<Seat>(kNodes)) {
      states.push_back(std::make_unique<NodeState>(seat, job));
      states[seat]->disk[0] = daemon::copy_of(*states[seat]->replica, padded_count());
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

  // Trains to the end, in intervals of at most so many events of four members; fewer have fewer to a step.
  void train(std::uint64_t most_events, IntervalCounts& counts) {
    for (std::uint32_t number = 1; first_step < kSteps && !testing::Test::HasFailure(); ++number) {
      ReferenceView reference;
      for (const Seat seat : seats) {
        reference.seats.push_back(seat.index());
        reference.weights.push_back(weights[seat.index()]);
      }
      views_by_step.resize(first_step);
      views_by_step.resize(kSteps, reference);
      ASSERT_LT(number, 2'000u) << "nothing happens any more";
      Interval interval(job, daemon::View(number, seats), weights, first_step, states, random, counts, plants_fault_);
      interval.run(random.between(1, most_events * seats.size() * seats.size() / 16));
      if (testing::Test::HasFailure()) return;
      if (plants_fault_ || random.one_in(2))
        cut_in_place(counts);
      else
        cut_to_copies(interval, counts);
      if (counts.moved_too_early > 0) return;
    }
  }

  // Cuts to the newest state that all members have confirmed; the others may belong to nodes that had no part in it.
  void cut_to_copies(Interval& interval, IntervalCounts& counts) {
    std::map<std::uint64_t, std::uint64_t> digests;  // by step
    std::set<std::uint64_t> asked;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      Replica& replica = *states[seats[i]]->replica;
      const Round before = replica.committed_rounds();
      interval.node(Rank(i)).member().rest();
      EXPECT_EQ(replica.committed_rounds(), replica.confirmed_rounds());
      counts.undone += replica.committed_rounds() < before;
      const std::uint64_t digest = Replica::combine(replica.segment_digests());
      EXPECT_EQ(digests.emplace(replica.confirmed_rounds().value(), digest).first->second, digest)
          << "of step " << replica.confirmed_rounds().value();
    }
    EXPECT_LE(digests.rbegin()->first, digests.begin()->first + 1);
    first_step = digests.begin()->first;
    const StateArrays copy = states[seats.front()]->disk.at(first_step);
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const std::set<std::uint64_t>& own = interval.node(Rank(i)).checkpoints();
      for (const std::uint64_t step : own)
        if (step < first_step) asked.insert(step);
    }
    for (std::size_t i = 0; i < seats.size(); ++i)
      for (const std::uint64_t step : asked) EXPECT_TRUE(interval.node(Rank(i)).checkpoints().contains(step)) << step;
    if (!same_members_) choose_members();
    for (const Seat seat : seats) {
      NodeState& state = *states[seat];
      state.make_replica(job);
      state.disk[first_step] = copy;
      EXPECT_TRUE(state.replica->restore(copy, Round(first_step)).ok());
      EXPECT_EQ(Replica::combine(state.replica->segment_digests()), digests.begin()->second);
    }
  }

  // Cuts to the oldest state that the members hold: at most one step back. Some of them continue.
  void cut_in_place(IntervalCounts& counts) {
    first_step = UINT64_MAX;
    for (const Seat seat : seats) first_step = std::min(first_step, states[seat]->replica->committed_rounds().value());
    std::optional<std::uint64_t> digest;
    for (const Seat seat : seats) {
      Replica& replica = *states[seat]->replica;
      EXPECT_LE(replica.committed_rounds().value(), first_step + 1);
      if (replica.confirmed_rounds().value() > first_step) {
        ++counts.moved_too_early;
        return;
      }
      if (replica.committed_rounds().value() > first_step) {
        const std::vector<std::uint64_t> before = replica.segment_digests();
        replica.undo();
        replica.redo();
        EXPECT_EQ(replica.segment_digests(), before);
        replica.undo();
        ++counts.undone;
      } else if (replica.confirmed_rounds().value() < first_step) {
        replica.confirm(engine::average_rate(job.ema, first_step));
        ++counts.confirmed_late;
      }
      const std::uint64_t own = Replica::combine(replica.segment_digests());
      EXPECT_EQ(digest.value_or(own), own) << "of step " << first_step << " on seat " << seat.index();
      digest = own;
      states[seat]->disk[first_step] = daemon::copy_of(replica, padded_count());
    }
    while (!same_members_ && seats.size() > 1 && random.one_in(2))
      seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(random.between(0, seats.size() - 1)));
  }

  void expect_equal_to_the_whole() {
    const ReferenceState reference = train_reference(job, views_by_step, kBatch);
    for (const Seat seat : seats) EXPECT_EQ(difference(reference, *states[seat]->replica), "") << seat.index();
  }

  schema::JobSpec job;
  Random random;
  std::vector<std::uint16_t> weights;  // by seat
  NodeStates states;
  std::vector<Seat> seats;
  std::uint64_t first_step = 0;
  std::vector<ReferenceView> views_by_step;

 private:
  const bool same_members_, plants_fault_;
};

class Intervals : public testing::TestWithParam<Mode> {};

void expect_the_whole(const Mode& mode, bool same_members) {
  IntervalCounts counts;
  for (const std::uint64_t seed : seeds(12)) {
    TG_SEED(seed);
    CutRun run(mode, seed, same_members);
    run.train(seed % 3 == 0 ? 60'000 : 600, counts);
    run.expect_equal_to_the_whole();
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%zu intervals, %zu undone, %zu confirmed late, %zu early, %zu checkpoints, %zu evaluations\n",
              counts.intervals, counts.undone, counts.confirmed_late, counts.early, counts.checkpoints,
              counts.evaluations);
  if (seed_asked_for()) return;
  EXPECT_EQ(counts.moved_too_early, 0u);
  EXPECT_GT(counts.intervals, 30u);
  EXPECT_GT(counts.undone, 0u);
  EXPECT_GT(counts.confirmed_late, 0u);
  EXPECT_GT(counts.early, 0u);
  EXPECT_GT(counts.checkpoints, 0u);
  EXPECT_GT(counts.evaluations, 0u);
}

TEST_P(Intervals, TheSameMembersEqualTheWhole) { expect_the_whole(GetParam(), true); }

TEST_P(Intervals, OtherMembersEqualAReplayByTheirList) { expect_the_whole(GetParam(), false); }

// What these tests would see of an average that does not wait.
TEST(Interval, AnAverageThatMovesAtTheCommitIsCaught) {
  IntervalCounts counts;
  for (const std::uint64_t seed : seeds(12)) {
    TG_SEED(seed);
    CutRun run(kModes[0], seed, true, true);
    run.train(600, counts);
    if (testing::Test::HasFailure() || counts.moved_too_early > 0) break;
  }
  EXPECT_GT(counts.moved_too_early, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Intervals, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tg::simulation
