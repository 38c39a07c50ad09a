#include "tests/simulation/simulator/cluster.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tg::simulation {

Per<Seat, std::string> node_names(std::size_t count) {
  Per<Seat, std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "node-%03zu", i);
    names.emplace_back(text);
  }
  return names;
}

void for_each_seed(std::size_t count, const Sizes& sizes,
                   const std::function<void(std::uint64_t seed, std::size_t nodes)>& scenario) {
  for (const std::uint64_t seed : seeds(count)) {
    // Mostly few nodes, now and then many.
    const std::size_t limit = seed % 25 == 0 ? sizes.most : std::min<std::size_t>(sizes.most, 8);
    const std::size_t nodes = Random(seed * 7919).between(sizes.least, std::max(sizes.least, limit));
    TG_SEED(seed);
    scenario(seed, nodes);
    if (testing::Test::HasFailure()) return;
  }
}

Cluster::Cluster(const NetworkOptions& network, NodeOptions common, MakeNode make)
    : names_(node_names(network.nodes)), common_(std::move(common)), network_(network), make_(std::move(make)) {
  if (!make_)
    make_ = [](Network& n, NodeOptions options) { return std::make_unique<VirtualNode>(n, std::move(options)); };
  for (const Seat seat : seats()) {
    disks_.push_back(std::make_shared<VirtualDisk>());
    disks_.back()->directory = 1 + seat.index();
  }
  for (const Seat seat : seats()) {
    nodes_.push_back(make_(network_, options_for(seat)));
    network_.attach(seat, nodes_.back().get());
  }
}

NodeOptions Cluster::options_for(Seat seat) {
  NodeOptions options = common_;
  options.names = names_;
  options.self = seat;
  options.disk = disks_[seat];
  options.on_begin_or_end = [this](Seat, std::uint64_t key, bool begin) {
    begun_[key] += begin ? 1 : -1;
    const auto active = std::count_if(begun_.begin(), begun_.end(), [](const auto& run) { return run.second > 0; });
    two_at_once_ = two_at_once_ || active > 1;
  };
  return options;
}

Seat Cluster::any_but(Seat seat) {
  const std::uint64_t other = random().between(0, size() - 2);
  return Seat(other < seat.index() ? other : other + 1);
}

void Cluster::start(Seat seat, const std::string& id, const schema::JobSpec& job) {
  tokens_[seat] = ++token_;
  node(seat).start(token_, {random().word(), id, schema::canonical_job(job), job.start_timeout_ms});
}

void Cluster::resume(Seat seat, const std::string& id, std::optional<std::uint64_t> from_step) {
  tokens_[seat] = ++token_;
  const schema::JobSpec job = nobody_joins();
  daemon::RunIdentity run{random().word(), id, schema::canonical_job(job), job.start_timeout_ms};
  run.weights.assign(size(), 1);
  run.resume = schema::Resume{disk(seat).lineage_of(id) + 1, from_step};
  node(seat).start(token_, run);
}

const StartAnswer* Cluster::answer(Seat seat) {
  const auto& answers = node(seat).answers();
  const auto found = answers.find(tokens_[seat]);
  return found == answers.end() ? nullptr : &found->second;
}

void Cluster::start_and_wait(Seat seat, const std::string& id, const schema::JobSpec& job) {
  network_.connect_all();
  start(seat, id, job);
  ASSERT_TRUE(runs_within(10'000, id)) << "the run did not begin everywhere";
}

void Cluster::kill(Seat seat, bool silent) {
  if (const auto key = node(seat).running_key()) --begun_[*key];
  network_.kill(seat, silent);
}

void Cluster::restart(Seat seat) {
  graveyard_.push_back(std::exchange(nodes_[seat], make_(network_, options_for(seat))));
  network_.restart(seat, nodes_[seat].get());
}

bool Cluster::run_until(const std::function<bool()>& done, std::uint64_t within_ms) {
  return network_.run_until(done, network_.now_ms() + within_ms);
}

bool Cluster::runs_within(std::uint64_t ms, const std::string& id) {
  return run_until([&] { return all_run(id); }, ms);
}

bool Cluster::ends_within(std::uint64_t ms, const std::string& id) {
  return run_until([&] { return ended(id); }, ms);
}

std::vector<Seat> Cluster::living() {
  std::vector<Seat> all;
  for (const Seat seat : seats())
    if (!network_.dead(seat) && !network_.paused(seat)) all.push_back(seat);
  return all;
}

bool Cluster::all_idle() {
  for (const Seat seat : seats())
    if (!network_.dead(seat) && !network_.paused(seat) && !node(seat).membership().idle()) return false;
  return true;
}

bool Cluster::all_run(const std::string& id) {
  for (const Seat seat : seats())
    if (!node(seat).running() || node(seat).membership().current()->id != id) return false;
  return true;
}

bool Cluster::ended(const std::string& id) {
  for (const Seat seat : seats())
    if (!network_.dead(seat) && !network_.paused(seat) && !node(seat).outcome(id).end) return false;
  return true;
}

}  // namespace tg::simulation
