// A cluster of nodes that really train, and the jobs that the scenarios give them.
#pragma once

#include "tests/simulation/exchange/exchange_node.h"
#include "tests/simulation/simulator/cluster.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {

// In turns.
inline schema::ExchangeKind exchange_of(std::uint64_t seed) {
  return seed % 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
}

// Small buckets and chunks, so that the tiny model has three buckets and seven chunks.
inline schema::JobSpec tiny_job(std::uint64_t seed, std::uint64_t steps, schema::ExchangeKind exchange) {
  schema::JobSpec job;
  job.seed = seed;
  job.steps = steps;
  job.exchange = exchange;
  job.bucket_parameters = 1'000;
  job.chunk_parameters = 1'024;
  job.digest_every = 4;
  return job;
}

class TrainingCluster : public Cluster {
 public:
  TrainingCluster(const NetworkOptions& network, Seat faulty = {}, Faults faults = {})
      : Cluster(network, {}, [faulty, faults](Network& net, NodeOptions options) {
          const Seat self = options.self;
          return std::make_unique<ExchangeNode>(net, std::move(options), self == faulty ? faults : Faults{});
        }) {}

  ExchangeNode& trainer(Seat seat) { return static_cast<ExchangeNode&>(node(seat)); }

  // Connects, starts at any node and trains to the end, whatever that is.
  void train(const schema::JobSpec& job, std::uint64_t within_ms = 120'000) {
    network().connect_all();
    start(any(), "run-1", job);
    EXPECT_TRUE(ends_within(within_ms)) << "somebody hangs";
  }

  // Step frame, scalers of each bucket and every chunk twice, for two steps: what the gates let pile up on one link.
  std::size_t most_frames_of_two_steps() { return 2 * (1 + 3 + 2 * 7) + 8; }

  // Survivors differ by one step at most, and those who committed the same step hold the same bits.
  void expect_consistent() {
    std::map<std::uint64_t, std::uint64_t> digests;
    for (const Seat seat : living())
      if (trainer(seat).has_state()) {
        const auto [found, is_new] = digests.emplace(trainer(seat).committed_steps(), trainer(seat).digest());
        EXPECT_EQ(found->second, trainer(seat).digest()) << name(seat) << " differs after step " << found->first;
      }
    if (!digests.empty()) {
      EXPECT_LE(digests.rbegin()->first - digests.begin()->first, 1u);
    }
    EXPECT_LE(network().most_waiting_frames(), most_frames_of_two_steps());
  }

  // Every member holds what the plain reference holds after so many steps, bit for bit.
  void expect_reference(const schema::JobSpec& job, std::uint64_t steps) {
    const ReferenceState reference = train_reference(job, size(), steps);
    for (const Seat seat : seats()) EXPECT_EQ(difference(reference, trainer(seat).replica()), "") << name(seat);
  }

  // Every survivor ended so, with every one of these words in its reason.
  void expect_failed(const std::vector<std::string>& words, schema::RunState state = schema::RunState::kFailed) {
    for (const Seat seat : living()) {
      const Outcome& outcome = node(seat).outcome("run-1");
      EXPECT_EQ(outcome.end, state) << name(seat) << ": " << outcome.reason;
      for (const std::string& word : words)
        EXPECT_NE(outcome.reason.find(word), std::string::npos) << name(seat) << " says: " << outcome.reason;
    }
  }
};

}  // namespace tg::simulation
