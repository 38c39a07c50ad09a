// How the most senior member of a view lets a node in that is no member: one that was restarted, cut off or replaced,
// or was never there (joining.h is the node's side); and how it lets a member go. Pure; part of Membership.
//
//   Join             from who wants in, again and again. Not prepared: it is invited, which is an answer and no more
//   hold             prepared, and its turn: after the step that the hold was asked for with, all members have one
//                    confirmed state and begin no other step. Only the word of this node ends that, or another view
//   Feed .. Fed      it is given the state, slice by slice, as it asks for them (Want), and says that it has it
//   change           one more view, whose members are these and the newcomer, last in seniority (view_change.h)
//
// One node at a time, none whose connections are not whole both ways to all members, and none again before a pause that
// doubles, so that a node which comes and goes does not stop the others for long. Where it becomes clear that feeding
// it will take longer than the job's join-limit, the hold ends. So it does where the newcomer is lost: then nothing has
// changed but the time.
//
// A member that is to leave (Leave, again and again, also to itself) needs the hold only: where it is held it says that
// it cannot go on, and the change that follows costs no step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/view_change.h"
#include "engine/data/file_sums.h"

namespace tg::daemon {

class Admission {
 public:
  static constexpr std::uint64_t kFirstPauseMs = 10'000, kLongestPauseMs = 600'000;
  static constexpr std::uint64_t kSayMs = 1'000;    // between words about how far it is
  static constexpr std::uint64_t kJudgeMs = 2'000;  // of feeding, before its rate is judged

  struct Options {
    std::uint64_t join_limit_ms = 0, silence_ms = 10'000;  // of a newcomer that is to be heard
    // The own vote, and the names of the own data's files: what a newcomer is compared with.
    schema::Vote own;
    engine::EachName names;
  };
  // run: what is told to who is invited. It has begun, and lasts as long as this.
  Admission(const Peers& peers, Outbox& out, const RunIdentity& run, schema::Commit choice, Options options)
      : peers_(peers),
        out_(out),
        run_(run),
        choice_(std::move(choice)),
        options_(std::move(options)),
        pauses_(peers.size()) {}

  // --- events ---
  void on(Seat from, const schema::Join& join, const ViewChange& change, bool stops, std::uint64_t now_ms);
  void on(Seat from, const schema::Leave& leave, const ViewChange& change, bool stops, std::uint64_t now_ms);
  void on(Seat from, const schema::Want& want, std::uint64_t now_ms);
  void on(Seat from, const schema::Fed& fed, ViewChange& change, std::uint64_t now_ms);
  // The answer to HoldRun: all members are held. Then the answer to ReadPast: what is given to the newcomer.
  void held(const ViewChange& change, std::uint64_t now_ms);
  void feeds(schema::Feed feed, const ViewChange& change, std::uint64_t now_ms);
  void end(const ViewChange& change, const std::string& why);  // the run is to stop
  void lost(Seat peer, const ViewChange& change);
  void installed();  // another view
  // All are held so that this member can leave.
  bool parts(Seat seat) const { return phase_ == Phase::kParting && seat_ == seat; }
  void tick(const ViewChange& change, std::uint64_t now_ms);

 private:
  enum class Phase : std::uint8_t { kNone, kHolding, kReading, kFeeding, kChanging, kParting };
  struct Pause {
    std::uint64_t until_ms = 0, ms = 0;  // 0: it has not joined yet
  };

  std::string why_not(Seat from, const schema::Join& join, const View& view, std::uint64_t now_ms) const;
  bool leads(const ViewChange& change) const;  // and no change is on
  void hold(Seat seat, bool comes, std::uint64_t now_ms);
  void refuse(Seat to, const View& view, const std::string& why);
  void invite(Seat to, const ViewChange& change);
  void say(const View& view, std::uint64_t now_ms);
  void give_up(const View& view, const std::string& why);
  std::uint64_t bytes() const;

  const Peers& peers_;
  Outbox& out_;
  const RunIdentity& run_;
  const schema::Commit choice_;
  const Options options_;
  Per<Seat, Pause> pauses_;

  // The newcomer, or who leaves; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  Seat seat_;
  bool comes_ = false;
  std::uint64_t directory_ = 0, incarnation_ = 0;
  schema::Feed feed_;
  std::uint64_t done_ = 0;                                   // bytes
  std::uint64_t since_ms_ = 0, heard_ms_ = 0, said_ms_ = 0;  // of the hold; of the newcomer's last word; of ours
};

}  // namespace tg::daemon
