// N virtual nodes on a virtual network, and the one promise that holds at every moment: never two runs at once.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schema/options/job.h"
#include "tests/seeds.h"
#include "tests/simulation/simulator/network.h"
#include "tests/simulation/simulator/virtual_node.h"

namespace tg::simulation {

// The clockwork in the place of a run has no state to send.
inline schema::JobSpec nobody_joins() {
  schema::JobSpec job;
  job.join_limit_ms = 0;
  return job;
}

Per<Seat, std::string> node_names(std::size_t count);  // "node-000": none is part of another

struct Sizes {
  std::size_t least, most;
};
// One scenario with so many seeds, each on a drawn number of nodes. The first seed that fails is printed and ends it.
void for_each_seed(std::size_t count, const Sizes& nodes,
                   const std::function<void(std::uint64_t seed, std::size_t nodes)>& scenario);

class Cluster {
 public:
  using MakeNode = std::function<std::unique_ptr<VirtualNode>(Network&, NodeOptions)>;
  // Every node gets a copy of `common`.
  Cluster(const NetworkOptions& network, NodeOptions common, MakeNode make = {});

  Network& network() { return network_; }
  Random& random() { return network_.random(); }
  std::uint64_t seed() const { return network_.seed(); }
  std::size_t size() const { return names_.size(); }
  auto seats() const { return names_.places(); }
  VirtualNode& node(Seat seat) { return *nodes_[seat]; }
  const std::string& name(Seat seat) const { return names_[seat]; }
  Seat any() { return Seat(random().between(0, size() - 1)); }
  Seat any_but(Seat seat);

  // The run's key is drawn.
  void start(Seat seat, const std::string& id, const schema::JobSpec& job = nobody_joins());
  // Resumes with the lineage after the one that this node's disk knows.
  void resume(Seat seat, const std::string& id, std::optional<std::uint64_t> from_step = std::nullopt);
  const StartAnswer* answer(Seat seat);  // to the last start or resume there
  // Starts at `seat` and waits until every node runs it; connects first.
  void start_and_wait(Seat seat, const std::string& id, const schema::JobSpec& job = nobody_joins());
  VirtualDisk& disk(Seat seat) { return *disks_[seat]; }
  void kill(Seat seat, bool silent);
  void restart(Seat seat);

  bool run_until(const std::function<bool()>& done, std::uint64_t within_ms);
  bool runs_within(std::uint64_t ms, const std::string& id = "run-1");  // on every node
  bool ends_within(std::uint64_t ms, const std::string& id = "run-1");  // on every living node
  bool all_idle();                                                      // all that are alive and awake
  bool all_run(const std::string& id);
  bool ended(const std::string& id);  // every living node has an end for it
  std::vector<Seat> living();
  std::size_t runs_begun() const { return begun_.size(); }
  bool two_runs_at_once() const { return two_at_once_; }

 private:
  NodeOptions options_for(Seat seat);

  const Per<Seat, std::string> names_;
  const NodeOptions common_;
  Network network_;
  MakeNode make_;
  Per<Seat, std::shared_ptr<VirtualDisk>> disks_;
  Per<Seat, std::unique_ptr<VirtualNode>> nodes_;
  std::vector<std::unique_ptr<VirtualNode>> graveyard_;  // events of the dead may still point there
  std::map<std::uint64_t, std::size_t> begun_;           // members in a run, by key
  bool two_at_once_ = false;
  std::uint64_t token_ = 0;
  std::map<Seat, std::uint64_t> tokens_;  // each seat's, of its last start
};

}  // namespace tg::simulation
