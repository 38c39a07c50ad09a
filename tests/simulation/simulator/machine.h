// One membership machine for tests, event by event, and how far runs can be brought with it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/membership/membership.h"
#include "schema/options/job.h"

namespace tg::daemon {
inline constexpr std::uint64_t kKey = 77;
inline constexpr std::uint64_t kToken = 5;
inline constexpr Seat kA{0}, kB{1}, kC{2}, kD{3};  // node-a ... node-d

// A machine and what it did since the last look.
class Machine {
 public:
  Machine(Seat self, std::size_t members, bool connected = true)
      : machine_({{names().begin(), names().begin() + static_cast<std::ptrdiff_t>(members)}, self}),
        self_(self),
        members_(members) {
    for (const Seat seat : places<Seat>(connected ? members_ : 0))
      if (seat != self_) machine_.connection(seat, true, now_ms);
  }
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all{"node-a", "node-b", "node-c", "node-d"};
    return all;
  }
  Membership* operator->() { return &machine_; }

  void look() { actions_ = machine_.take_actions(); }
  template <class Action>
  std::vector<Action> all() const {
    std::vector<Action> found;
    for (const MembershipAction& action : actions_)
      if (const auto* one = std::get_if<Action>(&action)) found.push_back(*one);
    return found;
  }
  // The only action of that kind.
  template <class Action>
  Action only() const {
    const auto found = all<Action>();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Action{} : found.front();
  }
  // The only frame of that kind.
  template <class Body>
  Body sent(std::vector<Seat> to, std::uint64_t key = kKey) const {
    Body body{};
    int count = 0;
    for (const SendFrame& one : all<SendFrame>()) {
      if (!std::holds_alternative<Body>(one.body)) continue;
      ++count;
      EXPECT_EQ(one.to, to);
      EXPECT_EQ(one.header.run, key);
      EXPECT_EQ(one.header.view, View::kFirst);
      body = std::get<Body>(one.body);
    }
    EXPECT_EQ(count, 1);
    return body;
  }
  std::size_t actions() const { return actions_.size(); }

  void start(const std::string& id = "run-1", std::uint64_t key = kKey) {
    machine_.start(kToken, {key, id, schema::canonical_job({}), 30'000}, now_ms);
    look();
  }
  void frame(Seat from, schema::FrameBody body, std::uint64_t key = kKey) {
    machine_.frame(from, {key, View::kFirst, 0}, body, now_ms);
    look();
  }
  void vote(const schema::Vote& vote) {
    machine_.prepared(kKey, vote, now_ms);
    look();
  }
  void tick(std::uint64_t later_ms) {
    now_ms += later_ms;
    machine_.tick(now_ms);
    look();
  }

  std::uint64_t now_ms = 1'000;

 private:
  Membership machine_;
  Seat self_;
  std::size_t members_;
  std::vector<MembershipAction> actions_;
};

inline schema::Vote yes() { return {true, ErrorKind::kFailed, "", 1, 2, 3, 4, 0.1, 16}; }

// node-a as proposer of three, up to a point.
inline Machine proposing() {
  Machine a(kA, 3);
  a.start();
  return a;
}
inline Machine running_proposer() {
  Machine a = proposing();
  a.vote(yes());
  a.frame(kB, yes());
  a.frame(kC, yes());
  return a;
}
// node-b as a member of node-c's run; not the one that grants.
inline Machine preparing() {
  Machine b(kB, 3);
  b.frame(kC, schema::Propose{"run-1", "steps = 5\n"});
  return b;
}
inline Machine voted() {
  Machine b = preparing();
  b.vote(yes());
  return b;
}
inline Machine running_member() {
  Machine b = voted();
  b.frame(kC, schema::Commit{schema::ExchangeKind::kSharded, schema::Coding::kRaw, schema::kMostWindowBytes,
                             schema::kLargeChunkParameters});
  return b;
}

}  // namespace tg::daemon
