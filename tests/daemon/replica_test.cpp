// The state of a run: what is double-buffered, what the digest covers.
#include "daemon/step/replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "schema/limits.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_model;

std::vector<float> statistics_of(const Replica& replica) {
  return {replica.statistics().begin(), replica.statistics().end()};
}

// Models without statistics: frozen, as they were before there were any.
TEST(Replica, FirstDigestsOfLenetAndCifarnet) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const engine::Model lenet = engine::make_model(ModelKind::kLenet),
                      cifarnet = engine::make_model(ModelKind::kCifarnet);
  const Replica of_lenet(*space, lenet, 1, 1), of_cifarnet(*space, cifarnet, 1, 1);
  EXPECT_EQ(of_lenet.segment_digests().size(), lenet.segments.size());
  EXPECT_EQ(Replica::combine(of_lenet.segment_digests()), 0x65721ea0ad216b64u);
  EXPECT_EQ(Replica::combine(of_cifarnet.segment_digests()), 0xff535840849c3bf9u);
}

TEST(Replica, StatisticsFollowWithTheCommitAndNotBefore) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const engine::SegmentTable& table = tiny_model().statistics;
  Replica replica(*space, tiny_model(), 0, 7);
  AlignedArray<float> expected(table.padded_count());
  engine::initialize(table, 7, expected.data());
  EXPECT_EQ(statistics_of(replica), std::vector<float>(expected.begin(), expected.end()));
  for (std::uint64_t step = 0; step < 3; ++step) {
    const std::span<const float> before = replica.statistics();
    const std::vector<float> was(before.begin(), before.end());
    const std::vector<float> measured = simulation::draw_statistics(1, 0, step);
    AlignedArray<float> flat(table.padded_count());
    engine::spread(table, measured, flat.span());
    engine::follow_statistics(tiny_model(), flat.span(), expected.span());
    replica.commit(measured);
    replica.confirm(0.5F);
    EXPECT_EQ(statistics_of(replica), std::vector<float>(expected.begin(), expected.end())) << step;
    EXPECT_TRUE(std::ranges::equal(before, was)) << "the other half still holds the state before";
  }
}

TEST(Replica, DigestsCoverEachStatisticAndNothingElseMoves) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const std::size_t segments = tiny_model().segments.size(), count = tiny_model().statistics.size();
  const std::vector<float> measured = simulation::draw_statistics(1, 0, 0);
  const auto digests_after = [&](const std::vector<float>& means) {
    Replica replica(*space, tiny_model(), 1, 7, false);
    replica.commit(means);
    replica.confirm(0);
    return replica.segment_digests();
  };
  const std::vector<std::uint64_t> digests = digests_after(measured);
  ASSERT_EQ(digests.size(), segments + count);
  std::size_t at = 0;
  for (std::size_t s = 0; s < count; at += tiny_model().statistics[s].element_count, ++s) {
    std::vector<float> other = measured;
    other[at] += 1;
    const std::vector<std::uint64_t> changed = digests_after(other);
    for (std::size_t d = 0; d < digests.size(); ++d) EXPECT_EQ(changed[d] != digests[d], d == segments + s) << d;
  }
  EXPECT_NE(digests[segments], digests[segments + 1]);
}

// Statistics that change places are another state.
TEST(Replica, EqualStatisticsHaveDigestsOfTheirOwn) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const Replica replica(*space, tiny_model(), 0, 7);
  const std::vector<std::uint64_t> digests = replica.segment_digests();
  const std::size_t first = tiny_model().segments.size();
  EXPECT_TRUE(std::ranges::equal(replica.statistics().first(512), replica.statistics().subspan(512, 512)));
  EXPECT_NE(digests[first], digests[first + 1]);
}

// The next state, made up: every element of every array moves.
void write_next(Replica& replica, kernels::TensorKernels& tensors, float size) {
  const std::size_t count = tiny_model().segments.padded_count();
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = size * static_cast<float>(i % 97);
  const kernels::StateFloats next = replica.next(0, count);
  for (const kernels::Floats array : {next.parameters, next.slot0})
    tensors.copy_in(std::as_bytes(std::span(values)), array);
}

TEST(Replica, ACommitIsUndoneAndRedoneAsLongAsItIsNotConfirmed) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const auto tensors = space->make_kernels();
  Replica replica(*space, tiny_model(), 1, 7);
  write_next(replica, *tensors, 1);
  replica.commit(simulation::draw_statistics(1, 0, 0));
  EXPECT_TRUE(replica.confirm(0.25F));
  const std::vector<std::uint64_t> before = replica.segment_digests();
  write_next(replica, *tensors, 2);
  replica.commit(simulation::draw_statistics(1, 0, 1));
  const std::vector<std::uint64_t> after = replica.segment_digests();
  EXPECT_EQ(replica.committed_rounds(), Round(2));
  EXPECT_EQ(replica.confirmed_rounds(), Round(1));
  replica.undo();
  EXPECT_EQ(replica.segment_digests(), before);
  EXPECT_EQ(replica.committed_rounds(), Round(1));
  replica.redo();
  EXPECT_EQ(replica.segment_digests(), after);
  replica.undo();
  write_next(replica, *tensors, 2);
  replica.commit(simulation::draw_statistics(1, 0, 1));
  EXPECT_EQ(replica.segment_digests(), after) << "made once more";
  EXPECT_TRUE(replica.confirm(0.25F));
  EXPECT_NE(replica.segment_digests(), after) << "the average has moved";
  EXPECT_EQ(replica.confirmed_rounds(), Round(2));
}

// Nothing writes frozen segments, neither at the beginning nor after a state was taken over.
TEST(Replica, FrozenSegmentsLieInBothHalves) {
  engine::Model model = tiny_model();
  std::vector<engine::Segment> segments = model.segments.segments();
  segments[2].frozen = true;
  model.segments = engine::SegmentTable(segments);
  const auto space = simulation::space_under_test(*kernels::available().front());
  const std::size_t begin = segments[2].offset, count = segments[2].padded_count();
  const auto values = [&](const Replica& replica, kernels::ConstFloats array) {
    std::vector<float> copy(count);
    replica.copy_out(array, begin, copy);
    return copy;
  };
  Replica replica(*space, model, 1, 7), other(*space, model, 1, 8);
  const std::vector<float> own = values(replica, replica.parameters()), others = values(other, other.parameters());
  ASSERT_NE(own, others);
  EXPECT_EQ(values(replica, replica.next_parameters()), own);
  ASSERT_TRUE(replica.restore(arrays_of(other), Round(5)).ok());
  for (std::uint64_t step = 5; step < 8; ++step) {
    replica.commit(simulation::draw_statistics(1, 0, step));
    EXPECT_TRUE(replica.confirm(0.25F));
    EXPECT_EQ(values(replica, replica.parameters()), others);
    EXPECT_EQ(values(replica, replica.average()), others);
  }
}

TEST(Replica, TheAverageMovesInPartsToTheSameBits) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const auto tensors = space->make_kernels();
  Replica whole(*space, tiny_model(), 1, 7), parts(*space, tiny_model(), 1, 7),
      without(*space, tiny_model(), 1, 7, false);
  for (Replica* replica : {&whole, &parts, &without}) {
    write_next(*replica, *tensors, 3);
    replica->commit(simulation::draw_statistics(1, 0, 0));
  }
  EXPECT_TRUE(whole.confirm(0.3F));
  std::size_t calls = 1;
  while (!parts.confirm(0.3F, 3 * kernels::kBlock)) {
    ++calls;
    EXPECT_EQ(parts.confirmed_rounds(), Round(0));
  }
  EXPECT_GT(calls, 3u);
  EXPECT_EQ(parts.segment_digests(), whole.segment_digests());
  EXPECT_TRUE(without.confirm(0.3F, kernels::kBlock)) << "there is none to move";
}

TEST(Replica, TakesOverACopyOfAnother) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const auto tensors = space->make_kernels();
  const std::size_t count = tiny_model().segments.padded_count();
  for (const bool average : {true, false}) {
    Replica replica(*space, tiny_model(), 1, 7, average);
    write_next(replica, *tensors, 1);
    replica.commit(simulation::draw_statistics(1, 0, 0));
    replica.confirm(0.25F);
    const StateArrays copy = copy_of(replica, count);
    Replica another(*space, tiny_model(), 1, 8, average);
    std::size_t advanced = 0;
    ASSERT_TRUE(another.restore(copy, Round(41), [&] { ++advanced; }).ok());
    EXPECT_EQ(advanced, average ? 3u : 2u);
    EXPECT_EQ(another.segment_digests(), replica.segment_digests());
    EXPECT_EQ(another.committed_rounds(), Round(41));
    EXPECT_EQ(another.confirmed_rounds(), Round(41));
    for (Replica* one : {&replica, &another}) {
      write_next(*one, *tensors, 2);
      one->commit(simulation::draw_statistics(1, 0, 1));
      one->confirm(0.125F);
    }
    EXPECT_EQ(another.segment_digests(), replica.segment_digests());
    Replica two_slots(*space, tiny_model(), 2, 7, average);
    EXPECT_NE(two_slots.restore(copy, Round(41)).error().message.find("has 1 slots where the optimizer has 2"),
              std::string::npos);
  }
}

// The average, or the parameters that stand for it, with the statistics; it stays while the state goes on.
TEST(Replica, KeepsTheBestModelUntilABetterOne) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  const auto tensors = space->make_kernels();
  const std::size_t count = tiny_model().segments.padded_count();
  for (const bool average : {true, false}) {
    Replica replica(*space, tiny_model(), 1, 7, average), without(*space, tiny_model(), 1, 7, average);
    const std::size_t bytes = replica.bytes();
    EXPECT_FALSE(replica.keeps_best());
    replica.make_room_for_best();
    EXPECT_EQ(replica.bytes(), bytes + Replica::best_bytes(tiny_model()));
    EXPECT_TRUE(std::ranges::all_of(replica.best().parameters, [](float one) { return one == 0; }));
    const auto go_on = [&](Replica& of, float size) {
      write_next(of, *tensors, size);
      of.commit(simulation::draw_statistics(1, 0, 0));
      of.confirm(0.25F);
    };
    go_on(replica, 1);
    replica.keep_best();
    std::vector<float> shown(count);
    replica.copy_out(replica.average(), 0, shown);
    const std::vector<float> statistics = statistics_of(replica);
    go_on(replica, 2);
    EXPECT_TRUE(std::ranges::equal(replica.best().parameters, shown));
    EXPECT_TRUE(std::ranges::equal(replica.best().statistics, statistics));
    EXPECT_FALSE(std::ranges::equal(replica.statistics(), statistics));
    for (const float size : {1.0F, 2.0F}) go_on(without, size);
    EXPECT_EQ(replica.segment_digests(), without.segment_digests()) << "no digest covers it";

    for (const StateArrays& arrays : {arrays_of(replica), copy_of(replica, count)}) {
      Replica another(*space, tiny_model(), 1, 8, average);
      another.make_room_for_best();
      ASSERT_TRUE(another.restore(arrays, Round(2)).ok());
      EXPECT_TRUE(std::ranges::equal(another.best().parameters, shown));
      EXPECT_TRUE(std::ranges::equal(another.best().statistics, statistics));
      EXPECT_EQ(another.segment_digests(), replica.segment_digests());
    }
    ASSERT_TRUE(replica.restore(arrays_of(without), Round(2)).ok()) << "where there has been no evaluation yet";
    replica.keep_best();
    EXPECT_FALSE(std::ranges::equal(replica.best().parameters, shown));
  }
}

TEST(Replica, CountsItsStatisticsTwice) {
  engine::Model without = tiny_model();
  without.statistics = {};
  const std::size_t more = tiny_model().statistics.padded_count() * sizeof(float);
  EXPECT_EQ(Replica::bytes(tiny_model(), 1, true), Replica::bytes(without, 1, true) + 2 * more);
}

TEST(Models, FitTheFramesOfARun) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const engine::Model model = engine::make_model(kind);
    EXPECT_LE(model.segments.size() + model.statistics.size(), schema::kMaxDigests) << model.name;
    EXPECT_LE(model.statistics.parameter_count(), schema::kMaxStatistics) << model.name;
  }
}

}  // namespace
}  // namespace tg::daemon
