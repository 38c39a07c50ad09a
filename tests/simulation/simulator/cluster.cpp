#include "tests/simulation/simulator/cluster.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tg::simulation {

std::vector<std::string> node_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "node-%03zu", i);
    names.emplace_back(text);
  }
  return names;
}

std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const char* one = std::getenv("TGD_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

std::size_t draw_size(std::uint64_t seed, std::size_t least, std::size_t most) {
  Random random(seed * 7919);
  const std::size_t limit = seed % 25 == 0 ? most : std::min<std::size_t>(most, 8);
  return random.between(least, std::max(least, limit));
}

Cluster::Cluster(const NetworkOptions& network, NodeOptions common, MakeNode make)
    : names_(node_names(network.nodes)), common_(std::move(common)), network_(network), make_(std::move(make)) {
  if (!make_)
    make_ = [](Network& n, NodeOptions options) { return std::make_unique<VirtualNode>(n, std::move(options)); };
  for (Rank rank = 0; rank < names_.size(); ++rank) {
    nodes_.push_back(make_(network_, options_for(rank)));
    network_.attach(rank, nodes_.back().get());
  }
}

NodeOptions Cluster::options_for(Rank rank) {
  NodeOptions options = common_;
  options.names = names_;
  options.self = rank;
  options.on_begin_or_end = [this](Rank, std::uint64_t key, bool begin) {
    begun_[key] += begin ? 1 : -1;
    const auto active = std::count_if(begun_.begin(), begun_.end(), [](const auto& run) { return run.second > 0; });
    two_at_once_ = two_at_once_ || active > 1;
  };
  return options;
}

Rank Cluster::any_but(Rank rank) {
  const Rank other = random().between(0, size() - 2);
  return other < rank ? other : other + 1;
}

void Cluster::start(Rank rank, const std::string& id, const schema::JobSpec& job) {
  tokens_[rank] = ++token_;
  node(rank).start(token_, {random().word(), id, schema::canonical_job(job), job.start_timeout_ms});
}

const StartAnswer* Cluster::answer(Rank rank) {
  const auto& answers = node(rank).answers();
  const auto found = answers.find(tokens_[rank]);
  return found == answers.end() ? nullptr : &found->second;
}

void Cluster::start_and_wait(Rank rank, const std::string& id, const schema::JobSpec& job) {
  network_.connect_all();
  start(rank, id, job);
  ASSERT_TRUE(run_until([&] { return all_run(id); }, 10'000)) << "the run did not begin everywhere";
}

void Cluster::kill(Rank rank, bool silent) {
  if (const auto key = node(rank).running_key()) --begun_[*key];
  network_.kill(rank, silent);
}

void Cluster::restart(Rank rank) {
  graveyard_.push_back(std::exchange(nodes_[rank], make_(network_, options_for(rank))));
  network_.restart(rank, nodes_[rank].get());
}

bool Cluster::run_until(const std::function<bool()>& done, std::uint64_t within_ms) {
  return network_.run_until(done, network_.now_ms() + within_ms);
}

std::vector<Rank> Cluster::living() {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size(); ++rank)
    if (!network_.dead(rank) && !network_.paused(rank)) ranks.push_back(rank);
  return ranks;
}

bool Cluster::all_idle() {
  for (Rank rank = 0; rank < size(); ++rank)
    if (!network_.dead(rank) && !network_.paused(rank) && !node(rank).membership().idle()) return false;
  return true;
}

bool Cluster::all_run(const std::string& id) {
  for (Rank rank = 0; rank < size(); ++rank)
    if (!node(rank).running() || node(rank).membership().current()->id != id) return false;
  return true;
}

bool Cluster::ended(const std::string& id) {
  for (Rank rank = 0; rank < size(); ++rank)
    if (!network_.dead(rank) && !network_.paused(rank) && !node(rank).outcome(id).end) return false;
  return true;
}

}  // namespace tg::simulation
