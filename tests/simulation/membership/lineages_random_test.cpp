// A mesh is cut in two, a person resumes the run in one part or in both, and the cut heals at any moment
// (daemon/README.md, "Two lineages"). P7: one lineage continues, and no state is lost.
#include <algorithm>
#include <map>
#include <set>

#include "kernels/base/hex.h"
#include "schema/text.h"
#include "tests/simulation/simulator/cluster.h"

namespace tg::simulation {
namespace {

using daemon::Held;
using daemon::Lineage;
using schema::RunState;

using Steps = std::map<std::uint64_t, std::map<Seat, std::uint64_t>>;  // committed ones, by key

// Commits a step at a time with the members that it hears, and sets aside what another lineage contradicts.
class CountingNode : public VirtualNode {
 public:
  CountingNode(Network& network, NodeOptions options, Steps& steps)
      : VirtualNode(network, std::move(options)), steps_(steps) {}

  void on_beat(Seat from, const schema::Heartbeat& beat) override {
    if (beat.view != 0 && !running() && membership_.idle()) set_aside(beat);
    VirtualNode::on_beat(from, beat);
  }
  void complete() { finish(RunState::kCompleted, ""); }
  const Lineage& lineage() const { return lineage_; }
  // The newest confirmed state of every lineage that began here.
  const std::map<std::uint64_t, Held>& known() const { return known_; }

 protected:
  void run_begins(const schema::Commit&) override {
    step_ = running_->resume ? running_->resume->start->step : 0;
    confirmed_ = step_;
    sealed_ = false;
    note();
  }
  void run_tick() override {
    ++progress_;
    if (sealed_) return;
    std::uint64_t least = step_;
    for (const Seat seat : membership_.view().seats()) {
      if (seat != seat_() && !network_.linked(seat_(), seat)) return;
      const auto there = steps_[running_->run_key].find(seat);
      least = there == steps_[running_->run_key].end() ? 0 : std::min(least, there->second);
    }
    confirmed_ = std::max(confirmed_, least);
    if (least >= step_) ++step_;
    note();
  }
  Sealed seal_run() override {
    sealed_ = true;
    return {step_, ""};
  }
  void run_changes(const schema::NextView& next) override {
    step_ = confirmed_ = next.start;
    sealed_ = false;
    note();
  }
  // And the one that is not known to be confirmed: another member may know that it is.
  void run_ends() override {
    auto& states = options_.disk->states["run-1"];
    for (std::uint64_t step = confirmed_; step <= step_; ++step)
      states.insert(states.begin(), {lineage_.number, membership_.view().number(), step, digest(step)});
  }
  State held() const override { return {confirmed_, digest(confirmed_)}; }
  std::uint64_t confirmed_step() const override { return confirmed_; }

 private:
  Seat seat_() const { return options_.self; }
  std::uint64_t digest(std::uint64_t step) const { return lineage_.key ^ step; }
  void note() {
    steps_[running_->run_key][seat_()] = step_;
    known_[running_->run_key] = {lineage_, confirmed_};
  }
  void set_aside(const schema::Heartbeat& beat) {
    for (auto& [key, record] : options_.disk->runs) {
      if (record.id != beat.run_id || compare(daemon::lineage_of(beat), known_[key]) != daemon::Heard::kContradicts)
        continue;
      record.id = schema::set_aside_id(record.id, hex_digest(key));
      options_.disk->states["run-1"].clear();
    }
  }

  Steps& steps_;
  std::map<std::uint64_t, Held> known_;
  std::uint64_t confirmed_ = 0;
  bool sealed_ = false;
};

NodeOptions with_a_short_timeout() {
  NodeOptions options;
  options.peer_timeout_ms = 2'000;
  return options;
}

class Split {
 public:
  Split(std::size_t nodes, std::uint64_t seed)
      : cluster_({nodes, seed}, with_a_short_timeout(), [this](Network& network, NodeOptions options) {
          return std::make_unique<CountingNode>(network, std::move(options), steps_);
        }) {
    cluster_.start_and_wait(cluster_.any(), "run-1");
    cluster_.network().run_for(cluster_.random().between(100, 3'000));
    far_ = std::set<Seat>();
    while (far_.size() < nodes / 2) far_.insert(cluster_.any());
    block(true);
    cluster_.network().run_for(10'000);
  }

  void block(bool on) {
    for (const Seat one : cluster_.seats())
      for (const Seat other : cluster_.seats())
        if (far_.contains(one) != far_.contains(other)) cluster_.network().block(one, other, on);
  }
  std::vector<Seat> side(bool far) {
    std::vector<Seat> seats;
    for (const Seat seat : cluster_.seats())
      if (far_.contains(seat) == far) seats.push_back(seat);
    return seats;
  }
  // A person stops what is there and resumes it with these nodes.
  void order(bool far) {
    const std::vector<Seat> seats = side(far);
    for (const Seat seat : seats) (void)node(seat).stop("run-1");
    const auto idle = [&](Seat seat) { return node(seat).membership().idle(); };
    EXPECT_TRUE(cluster_.run_until([&] { return std::ranges::all_of(seats, idle); }, 20'000)) << "it does not stop";
    schema::JobSpec job = nobody_joins();
    daemon::RunIdentity run{cluster_.random().word(), "run-1", schema::canonical_job(job), job.start_timeout_ms};
    run.weights.assign(cluster_.size(), 1);
    run.resume = schema::Resume{cluster_.disk(seats[0]).lineage_of("run-1") + 1, std::nullopt};
    run.members = seats;
    const std::uint64_t token = far ? 1'001 : 1'000;
    node(seats[0]).start(token, run);
    const auto runs = [&](Seat seat) { return node(seat).running(); };
    EXPECT_TRUE(cluster_.run_until([&] { return std::ranges::all_of(seats, runs); }, 20'000))
        << "it does not resume: "
        << (node(seats[0]).answers().contains(token) ? node(seats[0]).answers().at(token).status.error().message
                                                     : "no answer");
  }
  CountingNode& node(Seat seat) { return static_cast<CountingNode&>(cluster_.node(seat)); }
  Cluster& cluster() { return cluster_; }

  void expect_one_lineage(bool completed) {
    std::set<std::uint64_t> running;
    for (const Seat seat : cluster_.seats())
      if (node(seat).running()) running.insert(*node(seat).running_key());
    EXPECT_LE(running.size(), 1u) << "two lineages continue";
    EXPECT_TRUE(completed || running.size() == 1) << "none continues";
    for (const Seat seat : cluster_.seats()) {
      for (const auto& [key, held] : node(seat).known()) {
        const auto record = cluster_.disk(seat).runs.find(key);
        const bool kept = record != cluster_.disk(seat).runs.end();
        EXPECT_TRUE(kept || daemon::descends_from(node(seat).lineage(), held))
            << cluster_.name(seat) << " has lost step " << held.step << " of lineage " << held.lineage.number;
        if (!kept || !schema::is_set_aside(record->second.id, "run-1")) continue;
        ++set_aside;
      }
    }
  }
  std::size_t set_aside = 0;

 private:
  Steps steps_;
  Cluster cluster_;
  std::set<Seat> far_;
};

TEST(LineagesRandom, OneContinuesAndNoneIsLost) {
  std::size_t set_aside = 0, completed_ones = 0;
  for_each_seed(200, {2, 5}, [&](std::uint64_t seed, std::size_t nodes) {
    Split split(nodes, seed);
    Cluster& cluster = split.cluster();
    const bool far_runs = cluster.node(split.side(true)[0]).membership().state() == RunState::kRunning;
    const std::uint64_t drawn = cluster.random().between(0, 3);
    if (drawn != 0) split.order(!far_runs);  // mostly the part that is PAUSED
    if (drawn == 0 || drawn == 3) split.order(far_runs);
    cluster.network().run_for(cluster.random().between(0, 5'000));
    const bool completes = drawn != 0 && cluster.random().one_in(4);
    if (completes)
      for (const Seat seat : split.side(far_runs)) split.node(seat).complete();
    cluster.network().run_for(cluster.random().between(0, 500));
    split.block(false);
    cluster.network().run_for(20'000);
    split.expect_one_lineage(completes);
    set_aside += split.set_aside;
    completed_ones += completes ? 1 : 0;
  });
  if (seeds(200).size() < 200) return;
  EXPECT_GT(set_aside, 100u);
  EXPECT_GT(completed_ones, 10u);
}

}  // namespace
}  // namespace tg::simulation
