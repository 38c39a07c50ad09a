// View changes on a network that loses and reorders: nodes die and come back with their disks or without, connections
// break, cables carry one way, disks are full or stand still, nodes are shut down. Whatever happens the promises of
// DESIGN.md, section 6b, hold (P1 to P4 at every moment), and when it is quiet again a quorum continues (P5). A toy
// training commits and confirms by the rule of the gate. TGD_SEED=N runs one again, TGD_SEEDS=N as many as asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/view_change.h"
#include "tests/seeds.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

using simulation::Random;

constexpr std::uint64_t kRunKey = 77;
constexpr std::uint64_t kShortTimeoutMs = 3'000;
constexpr std::uint64_t kTickMs = 50, kBeatMs = 500;
constexpr std::uint64_t kSettledMs = 60'000;  // for a few changes with ballots that time out

// "All members have begun step k": the only frame of the toy training. It comes in order, or its connection breaks.
struct Announce {
  std::uint32_t view = 0;
  std::uint64_t step = 0;
};

class World;

// One process of a node, and the disk that outlives it.
struct Disk {
  std::uint64_t directory = 0;
  std::optional<VoterState> vote;
  bool full = false, stands = false;
};

class Process {
 public:
  Process(World& world, Seat self, Disk& disk, std::uint64_t incarnation, bool begins);

  void event(const std::function<void(ViewChange&)>& what);
  void announced(Seat from, const Announce& one);
  void shut_down();
  void break_down();
  void tick();
  void killed();  // what was on its way to the disk may have come there
  void set_connected(Seat peer, bool up) { peers_.set_connected(peer, up); }

  ViewChange& change() { return *change_; }
  bool trains() const { return trains_; }
  bool is_sealed() const { return sealed_; }
  bool fit() const { return fit_; }
  bool leaving() const { return leaving_; }
  bool gone() const { return gone_; }
  const View& view() const { return view_; }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t incarnation() const { return incarnation_; }

 private:
  void apply();
  void apply(const SendFrame& action);
  void apply(const Seal& action);
  void apply(const WriteVote& action);
  void apply(const InstallView& action);
  void apply(const LeaveView& action);
  void apply(const NoteJoin&) {}
  void apply(const auto&) { ADD_FAILURE() << "an action that is not of a view change"; }
  void begin_step();
  void try_gate();
  void confirm(std::uint64_t step);
  void after(std::uint64_t ms, std::function<void()> what);

  World& world_;
  const Seat self_;
  Disk& disk_;
  const std::uint64_t incarnation_;
  Peers peers_;
  Outbox out_;
  std::unique_ptr<ViewChange> change_;
  void finish_write();
  std::optional<WriteVote> writing_;
  std::uint64_t writing_since_ms_ = 0;
  bool leaving_ = false, gone_ = false, fit_ = true;
  std::uint64_t leaving_ms_ = 0;

  bool trains_ = false, sealed_ = false, applies_ = false;
  View view_;
  std::uint64_t committed_ = 0, digest_ = 1, digest_before_ = 0;
  std::map<std::uint64_t, std::set<Seat>> announced_;  // in this view, by step
  std::vector<std::pair<Seat, Announce>> early_;       // for later views
};

class World {
 public:
  World(std::uint64_t seed, std::size_t nodes);

  void run_for(std::uint64_t ms);
  void disturb();
  void calm_down();
  void expect_settled();

  Random& random() { return random_; }
  std::uint64_t now_ms() const { return now_ms_; }
  std::size_t size() const { return disks_.size(); }
  const Per<Seat, std::string>& names() const { return names_; }
  auto seats() const { return disks_.places(); }
  void at(std::uint64_t ms, std::function<void()> what) { events_.push({ms, ++sequence_, std::move(what)}); }
  Process* process(Seat seat) { return processes_[seat].get(); }
  bool linked(Seat a, Seat b) const { return up(a, b) && !blocked(a, b) && !blocked(b, a); }
  void send(Seat from, Seat to, const schema::FrameHeader& header, const schema::FrameBody& body);
  void send(Seat from, Seat to, const Announce& announce);
  void tell_goodbye(Seat from);
  bool strikes() { return strikes_ && random_.one_in(30); }
  void strike(Seat seat);

  // --- the promises ---
  void wrote(Seat seat, const VoterState& vote);
  void said(Seat seat, std::uint64_t directory, std::uint64_t incarnation, std::uint32_t view,
            const schema::FrameBody& body);
  void committed(std::uint32_t view, std::uint64_t step, std::uint64_t digest);
  void confirmed(std::uint32_t view, std::uint64_t step, std::uint64_t digest);
  std::uint64_t most_confirmed_before(std::uint32_t view) const {
    std::uint64_t most = 0;
    for (const auto& [number, step] : most_confirmed_)
      if (number < view) most = std::max(most, step);
    return most;
  }

 private:
  struct Event {
    std::uint64_t ms, sequence;
    std::function<void()> what;
    bool operator>(const Event& other) const { return ms != other.ms ? ms > other.ms : sequence > other.sequence; }
  };
  struct Line {  // one direction
    bool up = true, blocked = false;
    std::uint64_t epoch = 0, last_ms = 0;
    std::uint64_t elsewhere_ms = 0;          // since when heartbeats come that are not of the run
    std::deque<std::function<void()>> held;  // while it is blocked
  };
  Line& line(Seat from, Seat to) { return lines_[from.index() * size() + to.index()]; }
  const Line& line(Seat from, Seat to) const { return lines_[from.index() * size() + to.index()]; }
  bool up(Seat a, Seat b) const { return line(a, b).up; }
  bool blocked(Seat a, Seat b) const { return line(a, b).blocked; }
  Seat any() { return Seat(random_.between(0, size() - 1)); }
  void kill(Seat seat, bool silent);
  void restart(Seat seat, bool wiped);
  void break_connection(Seat a, Seat b, std::uint64_t notice_ms);
  void connect(Seat a, Seat b, std::uint64_t delay_ms);
  void tell(Seat seat, Seat peer, bool is_up, std::uint64_t delay_ms);
  void block(Seat from, Seat to);
  void heal();
  void tick();
  void look_for_strangers(Seat seat);

  Random random_;
  bool strikes_ = true;  // until it is calm
  std::uint64_t frames_for_one_lost_ = 20, most_delay_ms_ = 20;
  std::uint64_t now_ms_ = 1'000, sequence_ = 0, incarnations_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Per<Seat, std::string> names_;
  Per<Seat, Disk> disks_;
  Per<Seat, std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Process>> graveyard_;
  std::vector<Line> lines_;

  std::map<std::uint32_t, schema::NextView> decided_;                          // by number
  std::map<std::pair<std::uint32_t, schema::Ballot>, std::uint64_t> ballots_;  // whose, by incarnation
  std::map<std::tuple<Seat, std::uint64_t, std::uint32_t>, schema::Ballot> promised_, accepted_;  // sent to others
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> states_;                       // by view and step
  std::map<std::uint64_t, std::uint64_t> confirmed_;                                              // by step
  std::map<std::uint32_t, std::uint64_t> most_confirmed_;                                         // by view
};

// --- a process ---

Process::Process(World& world, Seat self, Disk& disk, std::uint64_t incarnation, bool begins)
    : world_(world), self_(self), disk_(disk), incarnation_(incarnation), peers_(world.names(), self) {
  for (const Seat seat : world.seats())
    if (seat != self) peers_.set_connected(seat, begins);
  if (!disk_.vote) return;
  change_ = std::make_unique<ViewChange>(peers_, out_, ViewChange::Self{disk.directory, incarnation, kShortTimeoutMs},
                                         *disk_.vote, begins);
  trains_ = begins;
  view_ = View(disk_.vote->view);
  if (begins) after(1, [this] { begin_step(); });
}

void Process::after(std::uint64_t ms, std::function<void()> what) {
  world_.at(world_.now_ms() + ms, [this, what = std::move(what)] {
    if (world_.process(self_) == this) what();
  });
}

void Process::event(const std::function<void(ViewChange&)>& what) {
  if (!change_) return;
  what(*change_);
  apply();
}

void Process::apply() {
  for (auto actions = out_.take(); !actions.empty(); actions = out_.take())
    for (const MembershipAction& action : actions) std::visit([this](const auto& one) { apply(one); }, action);
  change_->take_outcome();
}

void Process::apply(const SendFrame& action) {
  world_.said(self_, disk_.directory, incarnation_, action.header.view, action.body);
  for (const Seat to : action.to) world_.send(self_, to, action.header, action.body);
}

void Process::apply(const Seal&) {
  sealed_ = true;
  SealReport report{trains_, committed_, "", leaving_, {}};
  for (const Seat seat : world_.seats())
    if (seat != self_ && world_.process(seat) != nullptr && world_.linked(self_, seat))
      report.reachable.push_back(seat);
  change_->on_sealed(report, world_.now_ms());
}

void Process::apply(const WriteVote& action) {
  ASSERT_FALSE(writing_) << "two votes are being written";
  if (action.vote.promised.count > 0) sealed_ = true;
  writing_ = action;
  writing_since_ms_ = world_.now_ms();
  after(world_.random().between(0, 20), [this] { finish_write(); });
}

void Process::finish_write() {
  if (disk_.stands) return after(kTickMs, [this] { finish_write(); });
  const bool full = disk_.full;
  if (!full) {
    world_.wrote(self_, writing_->vote);
    disk_.vote = writing_->vote;
  }
  writing_.reset();
  // The worst moment to die: this node alone has written the vote, and has not sent it.
  if (world_.strikes()) world_.strike(self_);
  if (world_.process(self_) != this) return;
  event([&](ViewChange& change) { change.on_vote_written(full ? "its disk is full" : "", world_.now_ms()); });
  if (world_.strikes()) world_.strike(self_);
}

void Process::killed() {
  if (!writing_ || disk_.full || world_.random().one_in(2)) return;
  world_.wrote(self_, writing_->vote);
  disk_.vote = writing_->vote;
}

void Process::apply(const InstallView& action) {
  const schema::NextView& next = action.next;
  ASSERT_TRUE(trains_);
  ASSERT_EQ(next.number, view_.number() + 1);
  ASSERT_GE(next.start, world_.most_confirmed_before(next.number)) << "P3: a confirmed step is undone";
  ASSERT_TRUE(committed_ == next.start || committed_ == next.start + 1)
      << "P3: " << committed_ << " cannot become " << next.start;
  if (committed_ == next.start + 1) {
    --committed_;
    digest_ = digest_before_;
  }
  view_ = View(next);
  world_.confirmed(view_.number(), committed_, digest_);
  ASSERT_TRUE(view_.has_voter(self_, disk_.directory));
  sealed_ = applies_ = false;
  announced_.clear();
  for (const auto& [from, one] : std::exchange(early_, {})) announced(from, one);
  after(next.waits ? ViewChange::ViewChange::kFirstStepDelayMs : 1, [this, number = next.number] {
    if (view_.number() == number) begin_step();
  });
}

void Process::apply(const LeaveView&) {
  trains_ = false;
  if (leaving_) gone_ = true;
}

void Process::begin_step() {
  if (!trains_ || sealed_) return;
  announced_[committed_].insert(self_);
  for (const Seat seat : view_.seats())
    if (seat != self_) world_.send(self_, seat, Announce{view_.number(), committed_});
  try_gate();
}

void Process::announced(Seat from, const Announce& one) {
  if (change_ && one.view < change_->view().number())
    event([&](ViewChange& change) { change.on_stale_view(from, one.view, world_.now_ms()); });
  if (!trains_ || one.view < view_.number()) return;
  // The Decide comes first on each connection; here it may be late, or not be on the disk yet.
  if (one.view > view_.number()) return early_.push_back({from, one});
  if (sealed_ || !view_.has(from)) return;
  announced_[one.step].insert(from);
  try_gate();
}

// All have announced step k: state k is confirmed, and step k is applied.
void Process::try_gate() {
  if (applies_ || announced_[committed_].size() < view_.size() || !announced_[committed_].contains(self_)) return;
  applies_ = true;
  world_.confirmed(view_.number(), committed_, digest_);
  after(world_.random().between(1, 30), [this, number = view_.number()] {
    if (!trains_ || sealed_ || view_.number() != number) return;
    applies_ = false;
    digest_before_ = std::exchange(digest_, digest_ * 6364136223846793005 + view_.number() * 1000 + view_.size());
    announced_.erase(committed_);
    ++committed_;
    world_.committed(view_.number(), committed_, digest_);
    begin_step();
  });
}

void Process::shut_down() {
  if (!trains_ || leaving_) return;
  leaving_ = true;
  leaving_ms_ = world_.now_ms();
  world_.tell_goodbye(self_);
  event([](ViewChange& change) { change.on_shut_down(); });
}

void Process::break_down() {
  if (!trains_) return;
  fit_ = false;
  event([&](ViewChange& change) { change.on_ineligible(peers_.own_name() + " cannot go on", world_.now_ms()); });
}

void Process::tick() {
  if (writing_ && world_.now_ms() >= writing_since_ms_ + kShortTimeoutMs)
    event([&](ViewChange& change) { change.on_disk_problem("its disk stands still", world_.now_ms()); });
  event([&](ViewChange& change) { change.tick(world_.now_ms()); });
  if (leaving_ && change_ && (change_->is_alone() || world_.now_ms() >= leaving_ms_ + ViewChange::kLeavingMs))
    gone_ = true;
}

// --- the world ---

World::World(std::uint64_t seed, std::size_t nodes) : random_(seed) {
  // Half of the seeds have a network on which ballots overlap.
  if (random_.one_in(2)) {
    frames_for_one_lost_ = random_.between(2, 6);
    most_delay_ms_ = random_.between(20, 1'500);
  }
  names_.resize(nodes);
  disks_.resize(nodes);
  processes_.resize(nodes);
  lines_.resize(nodes * nodes);
  schema::NextView first{.number = View::kFirst};
  for (const Seat seat : seats()) {
    names_[seat] = std::string("node-") + static_cast<char>('a' + seat.index());
    disks_[seat].directory = 100 + seat.index();
    first.members.push_back(
        {static_cast<std::uint32_t>(seat.index()), View::kFirst, 1, ++incarnations_, disks_[seat].directory});
    first.names.push_back(names_[seat]);
  }
  decided_[View::kFirst] = first;
  for (const Seat seat : seats()) {
    disks_[seat].vote = VoterState{kRunKey, first, {}, {}, {}};
    processes_[seat] =
        std::make_unique<Process>(*this, seat, disks_[seat], first.members[seat.index()].incarnation, true);
  }
  at(now_ms_, [this] { tick(); });
}

void World::run_for(std::uint64_t ms) {
  const std::uint64_t end_ms = now_ms_ + ms;
  while (!events_.empty() && events_.top().ms <= end_ms && !testing::Test::HasFailure()) {
    const Event event = events_.top();
    events_.pop();
    now_ms_ = event.ms;
    event.what();
  }
  now_ms_ = end_ms;
}

void World::tick() {
  for (const Seat seat : seats()) {
    Process* const one = process(seat);
    if (one == nullptr) continue;
    one->tick();
    if (one->gone()) {
      kill(seat, false);
      continue;
    }
    if (now_ms_ % kBeatMs != 0 || !one->trains()) continue;
    look_for_strangers(seat);
    for (const Seat peer : seats())
      if (peer != seat && up(seat, peer) && !blocked(seat, peer))
        if (Process* const other = process(peer))
          other->event([&](ViewChange& change) { change.on_stale_view(seat, one->view().number(), now_ms_); });
  }
  at(now_ms_ + kTickMs, [this] { tick(); });
}

// Does what liveness does: a node whose heartbeats are not of this run was restarted.
void World::look_for_strangers(Seat seat) {
  for (const schema::ViewMember& member : process(seat)->change().view().members()) {
    const Seat peer(member.seat);
    Process* const other = process(peer);
    std::uint64_t& since_ms = line(peer, seat).elsewhere_ms;
    const bool elsewhere = other != nullptr && other->incarnation() != member.incarnation && linked(peer, seat);
    if (!elsewhere || since_ms == 0) since_ms = elsewhere ? now_ms_ : 0;
    if (!elsewhere || now_ms_ < since_ms + kShortTimeoutMs) continue;
    since_ms = 0;
    process(seat)->event([&](ViewChange& change) {
      change.on_peer_lost(peer, ViewChange::Loss::kUnreachable, names_[peer] + " is up, but not in the run", now_ms_);
    });
  }
}

// A frame of a change: lost at times, and in any order.
void World::send(Seat from, Seat to, const schema::FrameHeader& header, const schema::FrameBody& body) {
  if (!up(from, to) || random_.one_in(frames_for_one_lost_)) return;
  const std::uint64_t epoch = line(from, to).epoch;
  at(now_ms_ + random_.between(1, most_delay_ms_), [=, this] {
    if (epoch != line(from, to).epoch || blocked(from, to)) return;
    if (Process* const one = process(to))
      one->event([&](ViewChange& change) { change.on_frame(from, header, body, now_ms_); });
  });
}

// Delivers the frame in order, until the connection breaks.
void World::send(Seat from, Seat to, const Announce& announce) {
  Line& way = line(from, to);
  if (!way.up) return;
  const auto deliver = [=, this, epoch = way.epoch] {
    if (epoch != line(from, to).epoch) return;
    if (Process* const one = process(to)) one->announced(from, announce);
  };
  way.last_ms = std::max(way.last_ms, now_ms_ + random_.between(1, 10));
  at(way.last_ms, [=, this] {
    if (blocked(from, to))
      line(from, to).held.push_back(deliver);
    else
      deliver();
  });
}

void World::tell_goodbye(Seat from) {
  for (const Seat seat : seats())
    if (seat != from && linked(from, seat))
      at(now_ms_ + random_.between(1, 10), [=, this] {
        if (Process* const one = process(seat))
          one->event([&](ViewChange& change) {
            change.on_peer_lost(from, ViewChange::Loss::kLeaving, names_[from] + " was shut down", now_ms_);
          });
      });
}

void World::tell(Seat seat, Seat peer, bool is_up, std::uint64_t delay_ms) {
  at(now_ms_ + delay_ms, [=, this, process_then = process(seat), epoch = line(seat, peer).epoch] {
    Process* const one = process(seat);
    if (one == nullptr || one != process_then || epoch != line(seat, peer).epoch) return;
    one->set_connected(peer, is_up);
    one->event([&](ViewChange& change) {
      if (is_up)
        change.on_connected(peer, now_ms_);
      else
        change.on_peer_lost(peer, ViewChange::Loss::kUnreachable, names_[seat] + " lost " + names_[peer], now_ms_);
    });
  });
}

void World::break_connection(Seat a, Seat b, std::uint64_t notice_ms) {
  if (!up(a, b)) return;
  for (Line* const one : {&line(a, b), &line(b, a)}) {
    one->up = false;
    ++one->epoch;
    one->held.clear();
  }
  tell(a, b, false, notice_ms + random_.between(0, 50));
  tell(b, a, false, notice_ms + random_.between(0, 50));
}

void World::connect(Seat a, Seat b, std::uint64_t delay_ms) {
  at(now_ms_ + delay_ms, [=, this] {
    if (up(a, b) || process(a) == nullptr || process(b) == nullptr || blocked(a, b) || blocked(b, a)) return;
    // Both have noticed by then that the old one is gone.
    line(a, b).up = line(b, a).up = true;
    tell(a, b, true, random_.between(0, 20));
    tell(b, a, true, random_.between(0, 20));
  });
}

void World::kill(Seat seat, bool silent) {
  if (process(seat) == nullptr) return;
  process(seat)->killed();
  graveyard_.push_back(std::move(processes_[seat]));
  for (const Seat peer : seats())
    if (peer != seat) break_connection(seat, peer, silent ? kShortTimeoutMs : 0);
}

void World::restart(Seat seat, bool wiped) {
  if (process(seat) != nullptr) return;
  if (wiped) disks_[seat] = Disk{disks_[seat].directory + 100, std::nullopt, false};
  processes_[seat] = std::make_unique<Process>(*this, seat, disks_[seat], ++incarnations_, false);
  for (const Seat peer : seats()) {
    if (peer == seat) continue;
    // A node that had not noticed its death does so by its hello.
    if (Process* const other = process(peer)) {
      other->event([&](ViewChange& change) {
        change.on_peer_lost(seat, ViewChange::Loss::kUnreachable, names_[seat] + " was restarted", now_ms_);
      });
    }
    connect(seat, peer, random_.between(60, 400));
  }
}

// The cable carries nothing that way; after peer-timeout both ends have noticed.
void World::block(Seat from, Seat to) {
  line(from, to).blocked = true;
  at(now_ms_ + kShortTimeoutMs, [=, this] {
    if (blocked(from, to)) break_connection(from, to, 0);
  });
}

void World::heal() {
  for (const Seat a : seats()) {
    for (const Seat b : seats()) {
      if (a == b) continue;
      line(a, b).blocked = false;
      for (auto& deliver : std::exchange(line(a, b).held, {})) at(now_ms_ + 1, std::move(deliver));
      if (a < b) connect(a, b, random_.between(60, 400));
    }
  }
}

void World::disturb() {
  const Seat a = any(), b = any();
  switch (random_.between(0, 14)) {
    case 0:
    case 1:
      return kill(a, random_.one_in(3));
    case 2:
    case 3:
    case 4:
      return restart(a, random_.one_in(12));
    case 5:
    case 6:
      if (a == b) return;
      break_connection(a, b, 0);
      return connect(a, b, random_.between(60, 800));
    case 7:
      return a == b ? void() : block(a, b);
    case 8: {
      const std::uint64_t side = random_.word();
      for (const Seat one : seats())
        for (const Seat other : seats())
          if ((side >> one.index() & 1) != (side >> other.index() & 1)) block(one, other);
      return;
    }
    case 9:
    case 10:
      return heal();
    case 11:
      disks_[a].full = !disks_[a].full;
      return;
    case 12:
      disks_[a].stands = !disks_[a].stands;
      return;
    case 13:
      if (random_.one_in(3) && process(a) != nullptr) process(a)->break_down();
      return;
    default:
      if (random_.one_in(2) && process(a) != nullptr) process(a)->shut_down();
  }
}

// It is gone, or cut off without knowing it.
void World::strike(Seat seat) {
  if (random_.one_in(2)) return kill(seat, random_.one_in(3));
  const bool both_ways = random_.one_in(2);
  for (const Seat peer : seats()) {
    if (peer == seat) continue;
    block(seat, peer);
    if (both_ways) block(peer, seat);
  }
}

void World::calm_down() {
  heal();
  frames_for_one_lost_ = most_delay_ms_ = 20;
  strikes_ = false;
  for (Disk& disk : disks_) disk.full = disk.stands = false;
  const bool all = random_.one_in(2);
  for (const Seat seat : seats())
    if (all || random_.one_in(2)) restart(seat, false);
}

// --- the promises ---

void World::wrote(Seat seat, const VoterState& vote) {
  const auto [found, is_new] = decided_.emplace(vote.view.number, vote.view);
  EXPECT_EQ(found->second, vote.view) << "P1: two views " << vote.view.number << ", the second at " << names_[seat];
}

void World::said(Seat seat, std::uint64_t directory, std::uint64_t incarnation, std::uint32_t view,
                 const schema::FrameBody& body) {
  const auto voter = std::make_tuple(seat, directory, view);
  if (const auto* prepare = std::get_if<schema::Prepare>(&body)) {
    const auto [found, is_new] = ballots_.emplace(std::make_pair(view, prepare->ballot), incarnation);
    EXPECT_EQ(found->second, incarnation) << "P4: a ballot that was used before";
    ASSERT_TRUE(disks_[seat].vote);
    if (disks_[seat].vote->view.number == view) {
      EXPECT_GE(disks_[seat].vote->promised, prepare->ballot) << "P4: its own promise is not on disk";
    }
  }
  if (const auto* promise = std::get_if<schema::Promise>(&body)) {
    EXPECT_GE(promise->ballot, promised_[voter]) << "P4: it had promised a higher one";
    EXPECT_GE(promise->accepted_in, accepted_[voter]) << "P4: it had accepted something";
    EXPECT_GE(disks_[seat].vote->promised, promise->ballot) << "P4: sent before it was written";
    promised_[voter] = promise->ballot;
  }
  if (const auto* accepted = std::get_if<schema::Accepted>(&body)) {
    EXPECT_GE(accepted->ballot, promised_[voter]) << "P4: it had promised a higher one";
    EXPECT_GE(disks_[seat].vote->accepted_in, accepted->ballot) << "P4: sent before it was written";
    promised_[voter] = accepted_[voter] = accepted->ballot;
  }
}

void World::committed(std::uint32_t view, std::uint64_t step, std::uint64_t digest) {
  const auto [found, is_new] = states_.emplace(std::make_pair(view, step), digest);
  EXPECT_EQ(found->second, digest) << "P2: two states " << step << " of view " << view;
}

void World::confirmed(std::uint32_t view, std::uint64_t step, std::uint64_t digest) {
  most_confirmed_[view] = std::max(most_confirmed_[view], step);
  const auto [found, is_new] = confirmed_.emplace(step, digest);
  EXPECT_EQ(found->second, digest) << "P2: two confirmed states " << step;
}

// The newest view that any node knows is one that its members train in, if a quorum of its voters is there.
void World::expect_settled() {
  std::map<Seat, std::uint64_t> before;
  for (const Seat seat : seats())
    if (process(seat) != nullptr) before[seat] = process(seat)->committed();
  run_for(8'000);
  const View newest(decided_.rbegin()->second);
  std::vector<Seat> there;
  bool somebody_can = false, somebody_cannot = false;
  for (const Seat seat : seats()) {
    Process* const one = process(seat);
    if (one == nullptr || !newest.has_voter(seat, disks_[seat].directory)) continue;
    there.push_back(seat);
    somebody_can = somebody_can || (one->trains() && one->fit() && one->view().number() == newest.number());
    somebody_cannot = somebody_cannot || (one->trains() && !one->fit());
  }
  const std::string what = "view " + std::to_string(newest.number()) + " of " + std::to_string(newest.size()) + ", " +
                           std::to_string(there.size()) + " voters there";
  if (!is_quorum(newest, there)) {
    for (const Seat seat : there) {
      if (!process(seat)->trains()) continue;
      EXPECT_NE(process(seat)->change().pause_reason("run-1"), "")
          << names_[seat] << " does not say what it waits for, " << what;
    }
    return;
  }
  if (!somebody_can) return;
  EXPECT_FALSE(somebody_cannot) << what;
  EXPECT_EQ(there.size(), newest.size()) << "P5: an unreachable node is still a member, " << what;
  for (const Seat seat : there) {
    Process& one = *process(seat);
    EXPECT_TRUE(one.trains() && !one.is_sealed() && one.view().number() == newest.number())
        << "P5: " << names_[seat] << ", " << what;
    EXPECT_GT(one.committed(), before[seat]) << "P5: " << names_[seat] << " stands, " << what;
  }
}

void run(std::uint64_t seed) {
  Random random(seed * 7919);
  World world(seed, random.between(2, 8));
  const std::uint64_t count = random.between(1, 12);
  world.run_for(random.between(1, 500));
  for (std::uint64_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    world.disturb();
    world.run_for(random.one_in(3) ? random.between(0, 60) : random.between(0, 3'000));
  }
  if (testing::Test::HasFailure()) return;
  world.calm_down();
  world.run_for(kSettledMs);
  if (!testing::Test::HasFailure()) world.expect_settled();
}

TEST(ViewChangeRandom, ThePromisesHold) {
  for (const std::uint64_t seed : seeds(300)) {
    TG_SEED(seed);
    run(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tg::daemon
