// Whole runs with the real Membership, ViewChange, Member and Exchange while nodes die at every boundary, sleep, are
// cut off, lose connections, are shut down and come back: the promises of DESIGN.md, section 6b. In the environment:
// TGD_SCHEDULES=N so many, TGD_FIRST=N from that seed on, TGD_NODES=N on so many nodes. tests/simulation/schedules runs
// many, in parts. TGD_HISTORY=FILE writes what each process has seen, for the checker that also reads the files of real
// nodes (tests/process/history.py).
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kMaxSettleMs = 300'000;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Seen {
  std::size_t strikes = 0, changes = 0, joins = 0, leaves = 0, undone = 0, completed = 0, stopped = 0, interrupted = 0;
  std::map<Moment, std::size_t> deaths;
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, std::size_t nodes, Seen& seen, std::ostream& history)
      : seed_(seed),
        job_(job_of(seed)),
        seen_(seen),
        history_(history),
        cluster_({nodes, seed}, Seat(0), slow(), options(), slow()) {}

  void run() {
    cluster_.start_and_wait(cluster_.any(), "run-1", job_);
    if (testing::Test::HasFailure()) return;
    cluster_.network().run_for(random().between(0, 200));
    for (std::uint64_t left = random().between(1, 5); left > 0; --left) {
      ++seen_.strikes;
      strike();
      // Often the next one falls into the change that follows from this one.
      cluster_.network().run_for(random().one_in(4) ? random().between(0, 15'000) : random().between(0, 1'500));
      if (testing::Test::HasFailure()) return;
    }
    calm_down();
    EXPECT_TRUE(cluster_.run_until([&] { return cluster_.all_idle(); }, kMaxSettleMs))
        << "P5: a node hangs: " << words();
    for (const Seat seat : cluster_.seats()) note(seat);
    expect_one_end();
  }

 private:
  static schema::JobSpec job_of(std::uint64_t seed) {
    schema::JobSpec job = tiny_job(seed, 8 + seed % 16, exchange_of(seed));
    job.evaluate_every = 5;
    if (seed % 3 != 0) job.join_limit_ms = 60'000;
    return job;
  }
  // Steps are slow, so that what happens to the nodes happens in the run.
  static Faults slow() {
    Faults made;
    made.extra_compute_us = 150'000;
    return made;
  }
  NodeOptions options() {
    NodeOptions made;
    made.on_moment = [this](Seat seat, Moment moment) { reached(seat, moment); };
    return made;
  }
  Random& random() { return cluster_.random(); }

  // It dies the next time but so many that it comes there.
  void reached(Seat seat, Moment moment) {
    if (moment == Moment::kJoin) note(seat);  // it begins anew
    const auto found = doomed_.find(seat);
    if (found == doomed_.end() || found->second.first != moment || found->second.second-- > 0) return;
    doomed_.erase(found);
    ++seen_.deaths[moment];
    cluster_.kill(seat, random().one_in(3));
  }

  // The moments of a change come only in one.
  void doom(Seat victim, Seat other) {
    const auto moment = static_cast<Moment>((seed_ + seen_.strikes) % kMoments);  // each in its turn
    if (moment >= Moment::kQuiesce && moment <= Moment::kJoin) return doom_at_a_join(moment, victim, other);
    const bool in_a_change = moment <= Moment::kInstall;
    doomed_[victim] = {moment, random().between(0, in_a_change ? 1 : moment > Moment::kCommit ? 0 : 3)};
    if (!in_a_change || cluster_.network().dead(other)) return;
    random().one_in(2) ? cluster_.kill(other, false) : cluster_.network().break_connection(victim, other);
  }

  // The victim leaves, returns, and dies while it joins, or the member that admits it dies.
  void doom_at_a_join(Moment moment, Seat victim, Seat other) {
    for (const Seat seat : cluster_.seats())
      if (moment == Moment::kQuiesce ? seat != other : seat == victim) doomed_[seat] = {moment, 0};
    const Seat returns = moment == Moment::kQuiesce ? other : victim;
    if (!cluster_.network().dead(returns)) cluster_.kill(returns, false);
    cluster_.network().at(cluster_.network().now_us() + random().between(1'000, 3'000'000),
                          [this, returns] { restart(returns); });
  }

  void strike() {
    Network& network = cluster_.network();
    const Seat a = cluster_.any(), b = cluster_.any_but(a);
    switch (random().between(0, 11)) {
      case 0:
      case 1:
      case 2:
        return doom(a, b);
      case 3:
        if (!network.dead(a)) cluster_.kill(a, random().one_in(2));
        return;
      case 4:
        if (network.dead(a)) return;
        network.pause(a, true);
        return network.at(later(), [this, a] { cluster_.network().pause(a, false); });
      case 5:
        network.block(a, b, true);
        return network.at(later(), [this, a, b] { cluster_.network().block(a, b, false); });
      case 6:
        return part();
      case 7:
        return network.break_connection(a, b);
      case 8:
        if (!network.dead(a) && random().one_in(2)) cluster_.node(a).shut_down();
        return;
      case 9:
        if (!network.dead(a) && random().one_in(3)) (void)cluster_.node(a).stop("run-1");
        return;
      case 10:
        if (network.dead(a) || !cluster_.node(a).leave().ok()) return;
        ++seen_.leaves;
        return network.at(later(), [this, a] {
          if (!cluster_.network().dead(a)) cluster_.node(a).come_back();
        });
      default:
        return restart(a);
    }
  }
  std::uint64_t later() { return cluster_.network().now_us() + random().between(1'000, 25'000'000); }
  void part() {
    const std::uint64_t side = random().word(), until_us = later();
    for (const Seat a : cluster_.seats())
      for (const Seat b : cluster_.seats()) {
        if (a == b || (side >> a.index() & 1) == (side >> b.index() & 1)) continue;
        cluster_.network().block(a, b, true);
        cluster_.network().at(until_us, [this, a, b] { cluster_.network().block(a, b, false); });
      }
  }
  void restart(Seat seat) {
    if (!cluster_.network().dead(seat)) return;
    note(seat);
    cluster_.restart(seat);
  }
  void calm_down() {
    doomed_.clear();
    for (const Seat a : cluster_.seats()) {
      for (const Seat b : cluster_.seats())
        if (a != b) cluster_.network().block(a, b, false);
      if (cluster_.network().paused(a)) cluster_.network().pause(a, false);
    }
    for (const Seat seat : cluster_.seats()) restart(seat);
  }

  // What this process has seen, before another one takes its place.
  void note(Seat seat) {
    ExchangeNode& node = cluster_.trainer(seat);
    seen_.undone += node.undone();
    write(seat, node);
    seen_.joins += node.outcome("run-1").joined;
    for (const schema::NextView& next : node.outcome("run-1").views) {
      const auto [found, is_new] = views_.emplace(next.number, next);
      EXPECT_EQ(found->second, next) << "P1: two views " << next.number;
      seen_.changes += is_new;
    }
    for (const auto& [step, digest] : node.confirmed_digests()) {
      const auto [found, is_new] = confirmed_.emplace(step, digest);
      EXPECT_EQ(found->second, digest) << "P2, P3: two confirmed states " << step;
    }
  }

  void write(Seat seat, ExchangeNode& node) {
    const Outcome& outcome = node.outcome("run-1");
    if (!outcome.began) return;
    nlohmann::json views = nlohmann::json::array();
    if (!outcome.joined) {
      views.push_back(view_of(1, 0, std::vector<schema::ViewMember>(cluster_.size())));
      for (std::uint32_t i = 0; i < cluster_.size(); ++i) views[0]["members"][i] = i;
    }
    for (const schema::NextView& next : outcome.views) views.push_back(view_of(next.number, next.start, next.members));
    nlohmann::json line{
        {"schedule", seed_}, {"node", seat.index()}, {"views", views}, {"states", nlohmann::json::object()}};
    for (const auto& [step, digest] : node.confirmed_digests()) line["states"][std::to_string(step)] = digest;
    history_ << line << '\n';
  }
  static nlohmann::json view_of(std::uint32_t number, std::uint64_t start,
                                const std::vector<schema::ViewMember>& members) {
    nlohmann::json view{{"view", number}, {"start", start}};
    for (const schema::ViewMember& member : members) {
      view["members"].push_back(member.seat);
      view["weights"].push_back(member.weight);
    }
    return view;
  }

  void expect_one_end() {
    std::optional<schema::RunState> fact;
    for (const Seat seat : cluster_.seats()) {
      const Outcome& outcome = cluster_.node(seat).outcome("run-1");
      if (!outcome.end) continue;  // restarted
      EXPECT_NE(*outcome.end, schema::RunState::kFailed) << cluster_.name(seat) << ": " << outcome.reason;
      if (!schema::is_authoritative(*outcome.end)) continue;
      EXPECT_EQ(fact.value_or(*outcome.end), *outcome.end);
      fact = *outcome.end;
    }
    (!fact ? seen_.interrupted : *fact == schema::RunState::kCompleted ? seen_.completed : seen_.stopped) += 1;
    std::vector<schema::NextView> views;
    for (const auto& [number, next] : views_) views.push_back(next);
    if (fact) cluster_.expect_replayed(job_, views);
  }

  std::string words() {
    std::string text;
    for (const Seat seat : cluster_.seats()) {
      daemon::Membership& membership = cluster_.node(seat).membership();
      if (membership.idle()) continue;
      text += cluster_.name(seat) + " " + std::string(to_word(membership.state().value())) + " in view " +
              std::to_string(membership.view().number()) + ": " + membership.pause_reason() + "; ";
      const std::vector<schema::NextView>& views = cluster_.node(seat).outcome("run-1").views;
      if (!views.empty()) text += "(" + views.back().why + ") ";
    }
    return text;
  }

  const std::uint64_t seed_;
  const schema::JobSpec job_;
  Seen& seen_;
  std::ostream& history_;
  TrainingCluster cluster_;
  std::map<Seat, std::pair<Moment, std::uint64_t>> doomed_;
  std::map<std::uint32_t, schema::NextView> views_;
  std::map<std::uint64_t, std::uint64_t> confirmed_;
};

TEST(Schedules, ThePromisesHold) {
  Seen seen;
  const std::uint64_t first = from_environment("TGD_FIRST", 1001), count = from_environment("TGD_SCHEDULES", 450);
  const std::uint64_t nodes = from_environment("TGD_NODES", 0);
  const char* const path = std::getenv("TGD_HISTORY");
  std::ofstream history(path == nullptr ? "/dev/null" : path);
  for (std::uint64_t seed = seed_asked_for().value_or(first); seed < first + count || seed_asked_for(); ++seed) {
    TG_SEED(seed);
    Schedule(seed, nodes > 0 ? nodes : 2 + seed % 7, seen, history).run();
    if (HasFailure() || seed_asked_for()) break;
  }
  std::printf(
      "%zu strikes, %zu changes, %zu joins, %zu told to leave, %zu members undid a step; %zu COMPLETED, %zu STOPPED, "
      "%zu INTERRUPTED; "
      "deaths at "
      "a moment:",
      seen.strikes, seen.changes, seen.joins, seen.leaves, seen.undone, seen.completed, seen.stopped, seen.interrupted);
  for (const auto& [moment, deaths] : seen.deaths) std::printf(" %d: %zu", static_cast<int>(moment), deaths);
  std::printf("\n");
  EXPECT_TRUE(history.flush()) << path;
  if (seed_asked_for() || nodes > 0 || count < 390) return;  // the suite's own schedules come everywhere
  EXPECT_GT(seen.undone, 0u);
  EXPECT_GT(seen.joins, 50u);
  EXPECT_EQ(seen.deaths.size(), kMoments);
}

}  // namespace
}  // namespace tg::simulation
