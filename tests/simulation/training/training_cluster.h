// A cluster of nodes that really train, and the jobs that the scenarios give them.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/exchange/exchange_node.h"
#include "tests/simulation/simulator/cluster.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {

// Direct and sharded take turns.
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
  job.join_limit_ms = 0;  // a member that has left stays away
  return job;
}

class TrainingCluster : public Cluster {
 public:
  // `faults` are one node's, `others` those of all other nodes.
  explicit TrainingCluster(const NetworkOptions& network, Seat faulty = {}, Faults faults = {}, NodeOptions common = {},
                           Faults others = {})
      : Cluster(network, std::move(common), [faulty, faults, others](Network& net, NodeOptions options) {
          const Seat self = options.self;
          return std::make_unique<ExchangeNode>(net, std::move(options), self == faulty ? faults : others);
        }) {}

  ExchangeNode& trainer(Seat seat) { return static_cast<ExchangeNode&>(node(seat)); }

  // Connects, starts at any node and trains to the end, whatever that is.
  void train(const schema::JobSpec& job, std::uint64_t within_ms = 120'000) {
    network().connect_all();
    start(any(), "run-1", job);
    EXPECT_TRUE(ends_within(within_ms)) << "a node hangs";
  }

  // Step frame, scalers of each bucket and every chunk twice, for two steps: what the gates let pile up on one link.
  std::size_t most_frames_of_two_steps() { return 2 * (1 + 3 + 2 * 7) + 8; }

  // Survivors differ by one step at most, and those that committed the same step hold the same bits.
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

  std::vector<Seat> all_but(const std::vector<Seat>& victims) {
    std::vector<Seat> rest;
    for (const Seat seat : seats())
      if (std::ranges::find(victims, seat) == victims.end()) rest.push_back(seat);
    return rest;
  }

  // These are the members now, and have committed so many steps.
  bool train_alone(const std::vector<Seat>& members, std::uint64_t steps) {
    return std::ranges::all_of(members, [&](Seat seat) {
      daemon::Membership& membership = node(seat).membership();
      return membership.state() == schema::RunState::kRunning && membership.view().seats() == members &&
             trainer(seat).committed_steps() >= steps;
    });
  }

  // All but these continue without them, or report that too few are there.
  void expect_to_go_on_without(const std::vector<Seat>& victims, std::uint64_t within_ms) {
    const std::vector<Seat> rest = all_but(victims);
    const bool enough = daemon::is_quorum(daemon::View::of_all(size()), rest);
    std::uint64_t steps = 0;
    for (const Seat seat : rest) steps = std::max(steps, trainer(seat).committed_steps() + 3);
    const auto paused = [&](Seat seat) { return node(seat).membership().state() == schema::RunState::kPaused; };
    EXPECT_TRUE(
        run_until([&] { return enough ? train_alone(rest, steps) : std::ranges::all_of(rest, paused); }, within_ms))
        << rest.size() << " of " << size() << " do not go on";
  }

  // The weights of all nodes in the first view. By speed: each node reports to be as many times slower as its seat
  // says.
  std::vector<std::uint16_t> first_weights(const schema::JobSpec& job) {
    std::vector<std::uint16_t> weights(size(), 1);
    for (std::size_t i = 0; i < size() && job.split == schema::Split::kSpeed; ++i)
      weights[i] = static_cast<std::uint16_t>(std::lround(1000.0 / static_cast<double>(i + 1)));
    return weights;
  }

  // What the members of the newest view hold is what a replay by the list of views holds, bit for bit. known: where no
  // node that is there has been in all of them.
  void expect_replayed(const schema::JobSpec& job, const std::vector<schema::NextView>& known = {}) {
    std::vector<ReferenceView> views(1);
    for (const Seat seat : seats()) views[0].seats.push_back(seat.index());
    views[0].weights = first_weights(job);
    std::uint64_t steps = 0;
    for (const Seat seat : seats()) steps = std::max(steps, trainer(seat).committed_steps());
    std::vector<ReferenceView> by_step(steps, views[0]);
    const std::vector<schema::NextView>* newest = &known;
    for (const Seat seat : living()) {
      const std::vector<schema::NextView>& own = node(seat).outcome("run-1").views;
      if (own.size() > newest->size()) newest = &own;
    }
    std::vector<Seat> members = all_but({});
    for (const schema::NextView& next : *newest) {
      ReferenceView view;
      members = daemon::View(next).seats();
      for (const Seat seat : members) view.seats.push_back(seat.index());
      for (const Seat seat : members) view.weights.push_back(views[0].weights[seat.index()]);
      std::fill(by_step.begin() + static_cast<std::ptrdiff_t>(std::min(next.start, steps)), by_step.end(), view);
    }
    const std::vector<Seat> here = living();
    std::erase_if(members, [&](Seat seat) { return std::ranges::find(here, seat) == here.end(); });
    for (const Seat seat : members) {
      if (!trainer(seat).has_state()) continue;  // another process
      const std::vector<ReferenceView> own(
          by_step.begin(), by_step.begin() + static_cast<std::ptrdiff_t>(trainer(seat).committed_steps()));
      const ReferenceState reference = train_reference(job, own, schema::resolved_global_batch(job, size()));
      EXPECT_EQ(difference(reference, trainer(seat).replica()), "") << name(seat);
    }
  }

  void stop_and_expect_replayed(const schema::JobSpec& job) {
    for (const Seat seat : living())
      if (!node(seat).membership().idle()) (void)node(seat).stop("run-1");
    EXPECT_TRUE(run_until([&] { return all_idle(); }, 10'000)) << "it does not stop";
    expect_replayed(job);
  }

  // Expects that every survivor ended so, with every one of these words in its reason.
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
