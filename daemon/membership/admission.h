// Admission is the senior's side of a join (joiner.h is the joiner's) and of a leave. A joiner is a node that is no
// member: restarted, cut off, replaced, or new. Pure; part of Membership.
//
//   Join               from the joiner, repeatedly. If it is not prepared the answer is an Invite, and no more
//   Quiesce            prepared, and its turn: after the step whose flags ask for it, all members hold one confirmed
//                      state and begin no step. Only the senior releases them, or another view
//   SnapshotOffer ..   the joiner is sent the state, chunk by chunk as it asks (SnapshotRequest), and confirms it
//     SnapshotDone
//   view change        to these members and the joiner, last in seniority (view_change.h)
//
// One joiner at a time; none without links both ways to all members; and none again before a pause that doubles, so
// that a node that flaps does not stop the others for long. The members are released without the joiner if the snapshot
// would take longer than the job's join-limit, or if the joiner is lost: a failed join costs only time.
//
// A member that leaves (Leave, repeatedly, also to itself) needs the quiesce only: there it reports that it is leaving,
// and the change that follows costs no step.
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
  static constexpr std::uint64_t kReportMs = 1'000;  // between progress messages
  static constexpr std::uint64_t kRateMs = 2'000;    // how long it sends before its rate is measured

  struct Options {
    std::uint64_t join_limit_ms = 0, silence_ms = 10'000;  // a joiner's silence before it is lost
    // This node's vote and the names of its data files: a joiner's are compared with them.
    schema::Vote own;
    engine::EachName names;
  };
  // run: the active run, which outlives this; an Invite describes it.
  Admission(const Peers& peers, Outbox& out, const RunIdentity& run, schema::Commit choice, Options options)
      : peers_(peers),
        out_(out),
        run_(run),
        choice_(std::move(choice)),
        options_(std::move(options)),
        pauses_(Peers::kMax) {}

  // --- events ---
  void on_join(Seat from, const schema::Join& join, const ViewChange& change, bool stops, std::uint64_t now_ms);
  void on_leave(Seat from, const schema::Leave& leave, const ViewChange& change, bool stops, std::uint64_t now_ms);
  void on_snapshot_request(Seat from, const schema::SnapshotRequest& request, std::uint64_t now_ms);
  void on_snapshot_done(Seat from, const schema::SnapshotDone& done, ViewChange& change, std::uint64_t now_ms);
  // Answers QuiesceRun: all members are quiesced. Then answers ReadHistory with the snapshot.
  void on_quiesced(const ViewChange& change, std::uint64_t now_ms);
  void on_snapshot_offer(schema::SnapshotOffer offer, const ViewChange& change, std::uint64_t now_ms);
  void cancel(const ViewChange& change, const std::string& why);  // releases the members
  void on_peer_lost(Seat peer, const ViewChange& change);
  void on_view_installed();
  // All are quiesced so that this member can leave.
  bool is_leaving(Seat seat) const { return phase_ == Phase::kLeaving && seat_ == seat; }
  void tick(const ViewChange& change, std::uint64_t now_ms);

 private:
  enum class Phase : std::uint8_t { kNone, kQuiescing, kReadingHistory, kSending, kChanging, kLeaving };
  struct Pause {
    std::uint64_t until_ms = 0, ms = 0;  // 0: it has not joined before
  };

  std::string refusal_reason(Seat from, const schema::Join& join, const View& view, std::uint64_t now_ms) const;
  bool may_admit(const ViewChange& change) const;  // as the senior, in no view change
  void quiesce(Seat seat, bool is_join, std::uint64_t now_ms);
  void refuse(Seat to, const View& view, const std::string& why);
  void invite(Seat to, const ViewChange& change);
  void report_progress(const View& view, std::uint64_t now_ms);
  void release(const View& view, const std::string& why);
  std::uint64_t snapshot_bytes() const;
  std::uint16_t weight_of_node(const std::string& node) const;

  const Peers& peers_;
  Outbox& out_;
  const RunIdentity& run_;
  const schema::Commit choice_;
  const Options options_;
  Per<Seat, Pause> pauses_;

  // The joiner, or the member that leaves; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  Seat seat_;
  bool is_join_ = false;
  std::uint64_t directory_ = 0, incarnation_ = 0;
  schema::SnapshotOffer offer_;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t since_ms_ = 0, heard_ms_ = 0, reported_ms_ = 0;  // the quiesce; the joiner's last message; this node's
};

}  // namespace tg::daemon
