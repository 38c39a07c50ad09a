// How this node comes into a run that is on without it (admission.h is the side of who lets it in). Pure; part of
// Membership.
//
//   asking -> invited: preparing -> ready, asking again -> fed -> has the state: Fed -> the view with this node
//
// It hears of the run by the others' beats, and asks all of them: the most senior member answers. What it has prepared
// is kept while it waits for its turn, over changes of the view as well. While it asks, or prepares, nobody waits for
// it. The vote in the view that takes it in is the first one that it gives there; until that is decided it may be too
// late for it, and it asks again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/membership/actions.h"
#include "daemon/membership/peers.h"

namespace tg::daemon {

class Joining {
 public:
  static constexpr std::uint64_t kAgainMs = 2'000;      // between requests
  static constexpr std::uint64_t kRefusedMs = 3'000;    // after a no
  static constexpr std::uint64_t kFailedMs = 60'000;    // after this node could not
  static constexpr std::uint64_t kDecisionMs = 20'000;  // for the view that takes it in
  static constexpr std::uint64_t kSilenceMs = 5'000;    // of who feeds it, who says each second how far that is
  static constexpr std::uint64_t kOverMs = 5'000;       // without a beat of the run: it is over, or out of reach
  struct Voter {                                        // this node, as in schema::ViewMember
    std::uint64_t directory, incarnation;
  };
  Joining(const Peers& peers, Outbox& out, const Voter& self) : peers_(peers), out_(out), self_(self) {}

  // --- state ---
  bool prepares() const { return phase_ > Phase::kAsking; }  // the run takes this node's memory
  const RunIdentity& run() const { return run_; }            // then
  bool is(std::uint64_t key) const { return prepares() && run_.key == key; }
  bool is_fed() const { return phase_ == Phase::kFed; }
  const schema::NextView& view() const { return view_; }  // as of the last invitation
  const schema::Commit& choice() const { return choice_; }
  const schema::StateId& state() const { return state_; }  // that it is fed
  Seat host() const { return host_; }

  // --- events ---
  void is_on(const std::string& run_id, std::uint64_t now_ms);  // without this node, which is idle
  void on(Seat from, std::uint64_t key, const schema::Invite& invite, std::uint64_t now_ms);
  void on(Seat from, std::uint64_t key, const schema::Hold& hold, std::uint64_t now_ms);
  void on(Seat from, std::uint64_t key, std::uint32_t view, const schema::Feed& feed, std::uint64_t now_ms);
  void prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms);
  // The answer to TakeFeed: the state is whole and proven. True: Membership can become a member with it.
  bool fed(std::uint64_t key, std::uint64_t now_ms);
  void failed(std::uint64_t key, const std::string& why, std::uint64_t now_ms);
  void again(std::uint64_t now_ms);  // it came to nothing, what is prepared stays
  void joined() { phase_ = Phase::kNone; }
  void drop();  // all of it
  void tick(std::uint64_t now_ms);
  bool is_late(std::uint64_t now_ms) const { return is_fed() && now_ms >= fed_ms_ + kDecisionMs; }

 private:
  enum class Phase : std::uint8_t { kNone, kAsking, kPreparing, kReady, kFeeding, kFed };

  std::vector<std::uint32_t> hears() const;
  void ask(std::uint64_t now_ms);
  void tell(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const Voter self_;

  Phase phase_ = Phase::kNone;
  std::string run_id_;
  RunIdentity run_;        // once it is invited
  schema::NextView view_;  // the same
  schema::Commit choice_;
  Seat host_;          // who has invited or feeds it
  schema::Vote vote_;  // once it is prepared
  schema::StateId state_;
  std::uint64_t on_ms_ = 0, next_ms_ = 0, heard_ms_ = 0, fed_ms_ = 0;
};

}  // namespace tg::daemon
