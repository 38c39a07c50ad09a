// However members die around the end of a run, in the end all records say the same, and no node that has said
// COMPLETED or STOPPED was wrong.
#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kSettleMs = 30'000;

// Every record of the run, as text.
std::string recorded(TrainingCluster& cluster, Seat seat) {
  std::string text;
  for (const auto& [key, record] : cluster.node(seat).disk().runs)
    text += record.id + " " + std::string(to_word(record.end.truth.state)) + " " + record.end.truth.reason + " " +
            std::to_string(record.end.truth.step) + " " + std::to_string(record.end.truth.digest);
  return text;
}

struct Said {
  std::size_t completed = 0, stopped = 0, failed = 0, interrupted = 0, changed = 0;
};

void expect_one_truth(TrainingCluster& cluster, Said& said) {
  std::string one;
  for (const Seat seat : cluster.seats()) {
    const std::string own = recorded(cluster, seat);
    if (own.empty()) continue;  // it died before its run began
    if (one.empty()) one = own;
    EXPECT_EQ(own, one) << cluster.name(seat);
    for (const auto& [key, record] : cluster.node(seat).disk().runs) {
      // What it has of a fact is that state.
      const schema::Ended& truth = record.end.truth;
      if (!schema::is_authoritative(truth.state) || truth.save != schema::SaveState::kSaved) continue;
      EXPECT_EQ(truth.held_step, truth.step);
      EXPECT_EQ(truth.held_digest, truth.digest);
    }
    const std::vector<schema::RunState>& told = cluster.node(seat).outcome("run-1").told;
    for (std::size_t i = 1; i < told.size(); ++i) {
      EXPECT_TRUE(!schema::is_authoritative(told[i - 1]) || told[i] == told[i - 1]) << "a fact was taken back";
      EXPECT_TRUE(told[i - 1] != schema::RunState::kFailed || told[i] != schema::RunState::kInterrupted);
      said.changed += told[i] != told[i - 1];
    }
  }
  said.completed += one.find("COMPLETED") != std::string::npos;
  said.stopped += one.find("STOPPED") != std::string::npos;
  said.failed += one.find("FAILED") != std::string::npos;
  said.interrupted += one.find("INTERRUPTED") != std::string::npos;
}

// Deaths of one to all members at any moment of ending, saving and agreeing; every one comes back at some time.
void die_around_the_end(TrainingCluster& cluster, std::uint64_t steps) {
  Random& random = cluster.random();
  cluster.start_and_wait(cluster.any(), "run-1", tiny_job(cluster.seed(), steps, exchange_of(cluster.seed())));
  if (testing::Test::HasFailure()) return;
  if (random.one_in(3)) {
    cluster.network().run_for(random.between(0, 50));
    (void)cluster.node(cluster.any()).stop("run-1");
  }
  const Seat watched = cluster.any();
  cluster.run_until([&] { return cluster.node(watched).outcome("run-1").end || random.one_in(400); }, 3'000);
  const std::size_t deaths = random.between(1, cluster.size());
  for (std::size_t i = 0; i < deaths; ++i) {
    const Seat victim = cluster.any();
    if (cluster.network().dead(victim)) continue;
    if (random.one_in(4)) {
      cluster.node(victim).shut_down();
      cluster.network().run_for(random.between(0, 40));
    }
    cluster.kill(victim, random.one_in(5));
    cluster.network().run_for(random.between(0, 25));
    if (random.one_in(3)) cluster.restart(victim);
  }
  if (random.one_in(2)) cluster.network().run_for(random.between(0, 12'000));
  for (const Seat seat : cluster.seats())
    if (cluster.network().dead(seat)) cluster.restart(seat);
}

TEST(OneTruth, HoldsAfterDeathsAtAnyMomentOfTheEnd) {
  Said said;
  for_each_seed(400, {1, 5}, [&](std::uint64_t seed, std::size_t nodes) {
    Faults faults;
    if (seed % 8 == 0) faults.not_a_number = seed % 3;
    TrainingCluster cluster({nodes, seed}, Seat(seed % nodes), faults);
    for (const Seat seat : cluster.seats()) cluster.disk(seat).full = cluster.random().one_in(6);
    die_around_the_end(cluster, cluster.random().between(1, 6));
    if (testing::Test::HasFailure()) return;
    cluster.network().run_for(kSettleMs);
    expect_one_truth(cluster, said);
  });
  std::printf("ends: %zu COMPLETED, %zu STOPPED, %zu FAILED, %zu INTERRUPTED; %zu nodes heard better after the end\n",
              said.completed, said.stopped, said.failed, said.interrupted, said.changed);
  EXPECT_GT(said.completed, 0u);
  EXPECT_GT(said.stopped, 0u);
  EXPECT_GT(said.failed, 0u);
  EXPECT_GT(said.interrupted, 0u);
}

}  // namespace
}  // namespace tg::simulation
