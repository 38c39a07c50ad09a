// A joiner receives a snapshot: what goes in comes out, whatever is lost on the way; what does not fit is refused.
#include "daemon/step/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/simulator/random.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using Slices = std::deque<std::pair<std::uint64_t, std::vector<std::byte>>>;

struct Feeding {
  std::unique_ptr<kernels::MemorySpace> space = simulation::space_under_test(*kernels::available().front());
  engine::Model model;
  Replica donor, joiner;
  std::string metrics = "{\"step\":1}\n{\"step\":2}\n", fed_metrics = {};
  SnapshotBounds bounds{1, 100, 5, 1'000'000};

  explicit Feeding(engine::Model of, int slots = 1, bool average = true)
      : model(std::move(of)), donor(*space, model, slots, 7, average), joiner(*space, model, slots, 8, average) {}
  SnapshotSource source() {
    return {{"a record", "a view\n", metrics.size(),
             [this](std::uint64_t at, std::span<std::byte> to) {
               std::memcpy(to.data(), metrics.data() + at, to.size());
               return Status();
             }},
            donor};
  }
  Result<std::unique_ptr<SnapshotSink>> intake(const schema::SnapshotOffer& feed) {
    return SnapshotSink::of(feed, bounds, joiner, [this](std::span<const std::byte> bytes) {
      fed_metrics.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return Status();
    });
  }
  std::uint64_t digest(const Replica& replica) const { return Replica::combine(replica.segment_digests()); }
  schema::SnapshotOffer feed(const SnapshotSource& source) const { return {{1, 2, 40, digest(donor)}, source.parts()}; }
};

// The connection breaks at one slice in `lost_in`, if that is not 0: all that is in flight is lost.
void carry_over(SnapshotSource& source, SnapshotSink& intake, std::uint64_t lost_in) {
  simulation::Random random(20);
  Slices in_flight;
  std::uint64_t now_ms = 0;
  while (!intake.whole()) {
    now_ms += in_flight.empty() ? SnapshotSink::kAgainMs / 2 : 1;
    ASSERT_LT(now_ms, 10'000'000u) << "stuck at " << intake.done() << " bytes";
    while (const auto want = intake.due(now_ms)) {
      const Status sent = source.want(*want, [&](std::uint64_t at, std::span<const std::byte> bytes) {
        in_flight.emplace_back(at, std::vector<std::byte>(bytes.begin(), bytes.end()));
      });
      ASSERT_TRUE(sent.ok()) << sent.error().message;
      EXPECT_LE(in_flight.size(), schema::kSnapshotWindowBytes / schema::kSnapshotChunkBytes + 8)
          << "small parts beside it";
    }
    if (in_flight.empty()) continue;
    const auto [at, bytes] = std::move(in_flight.front());
    in_flight.pop_front();
    if (lost_in != 0 && random.one_in(lost_in)) {
      in_flight.clear();
      continue;
    }
    const Status taken = intake.take({at, bytes}, now_ms);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
  }
}

void expect_same(Feeding& feeding, std::uint64_t lost_in) {
  SnapshotSource source = feeding.source();
  auto intake = feeding.intake(feeding.feed(source));
  ASSERT_TRUE(intake.ok()) << intake.error().message;
  EXPECT_NE(feeding.digest(feeding.joiner), feeding.digest(feeding.donor));
  carry_over(source, **intake, lost_in);
  EXPECT_EQ(feeding.joiner.segment_digests(), feeding.donor.segment_digests());
  EXPECT_EQ(feeding.joiner.confirmed_rounds(), Round(40));
  EXPECT_EQ((*intake)->record(), "a record");
  EXPECT_EQ((*intake)->views(), "a view\n");
  EXPECT_EQ(feeding.fed_metrics, feeding.metrics);
}

TEST(Snapshot, TheJoinerEqualsItsDonor) {
  for (const bool average : {true, false})
    for (const int slots : {0, 1, 2}) {
      Feeding feeding(simulation::tiny_model(), slots, average);
      feeding.donor.commit(simulation::draw_statistics(1, 0, 0));
      feeding.donor.confirm(0.5F);
      expect_same(feeding, 0);
    }
}

TEST(Snapshot, WithTheBestModel) {
  Feeding feeding(simulation::tiny_model());
  for (Replica* replica : {&feeding.donor, &feeding.joiner}) replica->make_room_for_best();
  feeding.donor.commit(simulation::draw_statistics(1, 0, 0));
  feeding.donor.confirm(0.5F);
  feeding.donor.keep_best();
  feeding.donor.commit(simulation::draw_statistics(1, 0, 1));
  feeding.donor.confirm(0.5F);
  expect_same(feeding, 0);
  const Replica::Best &given = feeding.donor.best(), &taken = feeding.joiner.best();
  EXPECT_TRUE(std::ranges::equal(given.parameters, taken.parameters));
  EXPECT_TRUE(std::ranges::equal(given.statistics, taken.statistics));
  EXPECT_FALSE(std::ranges::equal(given.statistics, feeding.donor.statistics()));
}

TEST(Snapshot, ALargerModelTravelsInChunks) {
  Feeding feeding(engine::make_model(ModelKind::kLenet));
  expect_same(feeding, 0);
}

TEST(Snapshot, LostChunksAreRequestedAgain) {
  Feeding feeding(engine::make_model(ModelKind::kLenet));
  expect_same(feeding, 5);
}

TEST(Snapshot, ARunWithoutAPastAndWithoutMetrics) {
  Feeding feeding(simulation::tiny_model());
  SnapshotSource source({"r", ""}, feeding.donor);
  auto intake = feeding.intake(feeding.feed(source));
  ASSERT_TRUE(intake.ok());
  carry_over(source, **intake, 0);
  EXPECT_EQ(feeding.joiner.segment_digests(), feeding.donor.segment_digests());
  EXPECT_EQ((*intake)->views(), "");
}

TEST(Snapshot, PartsOfAnotherModelAndOddSlicesAreRefused) {
  Feeding feeding(simulation::tiny_model());
  const SnapshotSource source = feeding.source();
  const schema::SnapshotOffer good = feeding.feed(source);
  for (std::size_t part = 0; part < good.parts.size(); ++part) {
    schema::SnapshotOffer odd = good;
    odd.parts[part] = part < 3 ? UINT64_MAX : odd.parts[part] + 4;
    EXPECT_FALSE(feeding.intake(odd).ok()) << part;
  }
  schema::SnapshotOffer other_lineage = good, later_step = good, more_rows = good, no_room = good;
  other_lineage.state.lineage = 2;
  later_step.state.step = 101;
  more_rows.parts[2] = 41 * 16'000;
  no_room.parts[1] = 1'000'000;
  for (const schema::SnapshotOffer& odd : {other_lineage, later_step, more_rows}) {
    const auto refused = feeding.intake(odd);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("larger than its job allows"), std::string::npos);
  }
  more_rows.parts[2] = 41 * 10'000;
  EXPECT_TRUE(feeding.intake(more_rows).ok()) << "a run may have as many";
  ASSERT_FALSE(feeding.intake(no_room).ok());
  EXPECT_NE(feeding.intake(no_room).error().message.find("make room there"), std::string::npos);
  EXPECT_EQ(feeding.fed_metrics, "");
  schema::SnapshotOffer none = good;
  none.parts.clear();
  EXPECT_FALSE(feeding.intake(none).ok());
  auto intake = feeding.intake(good);
  ASSERT_TRUE(intake.ok());
  const std::vector<std::byte> bytes(good.parts[0] + 1);
  EXPECT_FALSE((*intake)->take({0, bytes}, 0).ok()) << "longer than its part";
  EXPECT_FALSE((*intake)->take({0, {}}, 0).ok());
  EXPECT_TRUE((*intake)->take({5, bytes}, 0).ok()) << "not awaited: no news";
  EXPECT_EQ((*intake)->done(), 0u);
}

}  // namespace
}  // namespace tg::daemon
