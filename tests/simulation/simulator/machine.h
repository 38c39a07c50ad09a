// One membership machine for tests. A test reads as a transcript: each event returns what the machine does then, in
// text, one line per action and in their order, "" for nothing. The text is exact: an action too many is a failure.
//
//   Machine b(kB, 3);                                       node-b of three, connected to all
//   EXPECT_EQ(b.start(), "claim run-1 to a");               a client starts run-1 there; b sends a claim to node-a
//   EXPECT_EQ(b.hears(kA, granted()), "propose run-1 to a c\nprepare run-1 with a b c");
//
// It seals and its vote is written at once, unless the disk is full; what follows is in the same text.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/membership/membership.h"
#include "schema/options/job.h"

namespace tg::daemon {
inline constexpr std::uint64_t kKey = 77;  // run-1's; lines show a key only where it is another one
inline constexpr std::uint64_t kToken = 5;
inline constexpr Seat kA{0}, kB{1}, kC{2}, kD{3};  // node-a, node-b, node-c, node-d
// The state directory that a node has in these tests.
constexpr std::uint64_t directory_of(Seat seat) { return 100 + seat.index(); }
constexpr std::uint64_t incarnation_of(Seat seat) { return 200 + seat.index(); }

class Machine {
 public:
  Machine(Seat self, std::size_t members, bool connected = true, std::uint16_t weight = 1);
  Machine(const Machine& other);  // at the same point: it has seen the same events
  // The state that the node reports when it is asked. It hears all nodes that it is connected to and has not lost, but
  // for these.
  Machine& has_committed(std::uint64_t step);
  Machine& does_not_reach(Seat peer);
  Machine& disk_is_full(bool full = true);
  Machine& disk_stands_still();  // until disk_goes_on()
  const Membership* operator->() const { return machine_.get(); }

  // --- events ---
  std::string disk_goes_on();
  std::string disk_is_late(const std::string& why);
  std::string start(const std::string& id = "run-1", std::uint64_t key = kKey,
                    const std::string& spec = schema::canonical_job({}));
  std::string starts_with(const std::vector<Seat>& asked);  // run-1, of these nodes
  std::string resumes(const schema::Resume& resume, const std::string& id = "run-1", std::uint64_t key = kKey,
                      std::optional<schema::StateId> not_from = {}, const std::string& spec = "join-limit = 0s\n");
  std::string connects(Seat peer, std::uint16_t weight = 1);
  std::string disconnects(Seat peer);
  std::string is_back(Seat peer);  // its connection broke, and there is another one
  std::string rekeys(Seat peer);   // disconnects, for one of both gets another cluster key
  std::string cannot_join(Seat peer, const std::string& why);
  std::string receives(Seat from, const schema::FrameBody& body, std::uint64_t key = kKey,
                       std::uint32_t view = View::kFirst);
  // run-1, with what is on its own disk.
  std::string offers(const schema::Offer& offer, std::uint32_t known_lineage = 1);
  // run-1, with this own vote; names: of this node's data's files.
  std::string prepares(
      const schema::Vote& vote, const engine::EachName& names = [](const auto&) {});
  std::string makes_progress(Seat seat);                     // with preparing
  std::string loses(Seat peer, const std::string& message);  // liveness gives up on it
  std::string fails(const schema::Fail& cause);              // the run itself cannot continue
  std::string finishes(schema::RunState state, const std::string& reason);
  std::string stopping();           // the union of flags says stop
  std::string finished(Seat peer);  // its last report is in
  std::string remembers(PastRun run, std::uint64_t key = kKey);
  std::string remembers_voter(const VoterState& vote);  // run-1's
  // The run is run-1. own: what this node holds of it.
  std::string receives_heartbeat(Seat from, std::uint32_t view, const daemon::Lineage& lineage = {1, kKey},
                                 const daemon::Held& own = {{1, kKey}, 5});
  std::string saves(const schema::Ended& own);                      // run-1's state, or not
  std::string discovers_run();                                      // run-1, without this node
  std::string is_quiesced();                                        // with all members
  std::string offers_snapshot(const schema::SnapshotOffer& offer);  // what it can give
  std::string has_snapshot(const std::string& why_not = "");        // it has the state
  std::string stops(const std::string& id = "run-1");               // a client's stop; "no: ..." where it is refused
  std::string leaves();                                             // a client's leave; "no: ..." where it is refused
  std::string shuts_down();
  std::string stays_out();
  std::string waits(std::uint64_t ms);

  // The frame of this kind that it sent at the last event, for another machine to hear.
  template <class Body>
  Body sent() const {
    std::vector<Body> found;
    for (const MembershipAction& action : actions_)
      if (const auto* frame = std::get_if<SendFrame>(&action))
        if (const auto* body = std::get_if<Body>(&frame->body)) found.push_back(*body);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Body{} : found.front();
  }

 private:
  using Happens = std::function<void(Membership& machine, std::uint64_t now_ms)>;
  struct Circumstances {
    SealReport report;
    std::set<Seat> deaf_to;
    bool full = false, stands = false;
  };
  std::string after(Happens event);  // what it does then
  void answer(const MembershipAction& action, std::uint64_t now_ms);

  MembershipOptions options_;
  std::unique_ptr<Membership> machine_;
  struct Happened {
    Happens event;
    std::uint64_t now_ms;
    Circumstances circumstances;
  };
  std::vector<Happened> past_;
  std::uint64_t now_ms_ = 1'000;
  Circumstances circumstances_{{true, 12, "", false, {}}, {}};
  std::vector<MembershipAction> actions_;
  VoterState vote_;

 public:
  const VoterState& vote() const { return vote_; }  // on its disk
  ChangeTimes installed() const;                    // for the view that it installed at the last event
};

// The first view of run-1 of so many.
schema::NextView first_view(std::size_t members);
// The view after that, of these members of it.
schema::NextView next_view(const std::vector<Seat>& members, std::uint64_t start = 12, std::uint32_t number = 2);
// A voter's promise and its acceptance; it hears all of four nodes.
schema::Promise promise(Seat from, schema::Ballot ballot, std::uint64_t step = 12);
schema::Accepted accepted(Seat from, schema::Ballot ballot);
constexpr schema::Ballot ballot(std::uint32_t count, Seat of) {
  return {count, static_cast<std::uint32_t>(of.index())};
}

inline schema::Vote yes() { return {true, ErrorKind::kFailed, "", 1, 2, 3, 4, 0.1, 16}; }
inline schema::Grant granted() { return {true, ""}; }
// A proposal to a mesh of three.
inline schema::Propose proposal(const std::string& id, const std::string& spec = "") { return {id, spec, {1, 1, 1}}; }
// Proposes to resume run-1, from the newest state.
inline schema::Propose to_go_on(const schema::Resume& resume = {}) {
  return {"run-1", schema::canonical_job({}), {1, 1, 1}, resume};
}
// An offer of states of lineage 1, view 1, with these steps, newest first; a state's digest is its step plus `odd`.
schema::Offer states(const std::vector<std::uint64_t>& steps, std::uint64_t odd = 0);

// --- what is done at an end ---

// The end of a start that was never proposed.
std::string start_ends(const std::string& state, const std::string& kind, const std::string& reason);
// The failure of node-a's proposal, with three nodes; `node` is to blame.
std::string proposal_fails(const std::string& node, const std::string& kind, const std::string& message);
// The failure of a run on node-b of three, which reports it to the others; `node` is to blame.
std::string run_fails(const std::string& node, const std::string& kind, const std::string& message);

// What a member says of its end; held_step is its state's digest, too.
schema::Ended an_end(schema::RunState state, std::int64_t since_ms, const std::string& reason = "",
                     schema::SaveState save = schema::SaveState::kSaved, std::uint64_t held_step = 9);

// --- how far run-1 has come ---

// node-a proposes it, of three.
Machine proposing();
Machine running_proposer();
// It runs run-1 of so many; node-a proposed it.
Machine running(Seat self, std::size_t members);
// A node that was one of so many members of run-1 and was started again; it is connected to no node.
Machine restarted(Seat self, std::size_t members);
// node-b is a member of it and node-c proposes; node-a, which grants, does neither.
Machine preparing();
Machine voted();
Machine running_member();
// The same ways for a run that is resumed: node-a looks for states; node-b does, for node-c; node-b has offered 900 and
// 600.
Machine finding();
Machine looking();
Machine offering();

}  // namespace tg::daemon
