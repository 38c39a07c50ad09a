// Resumes an interrupted run without a request (the job's auto-resume). The newest run is proposed as soon as the
// members of its last view are reachable, by the first of them. A node that is unreachable then joins later; if the job
// allows no joins, all nodes are awaited. Nothing is proposed while a run is active elsewhere. Status shows the nodes
// that are awaited. Node's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/node/resumption.h"
#include "daemon/run/run_context.h"

namespace tg::daemon {

class AutoResume {
 public:
  AutoResume(const RunContext& context, const Resumption& resumption) : context_(context), resumption_(resumption) {}

  // A heartbeat came of an active run in which this node is no member; the peer is in no run any more.
  void on_foreign_heartbeat(Seat peer, const std::string& run, std::uint64_t now_ms);
  void on_peer_left(Seat peer) { in_it_.erase(peer); }
  // That run; "" without a recent heartbeat.
  void on_run_begun() { elsewhere_until_ms_ = 0; }  // the heartbeats were of a run that begins here, too
  std::string run_elsewhere(std::uint64_t now_ms) const { return now_ms < elsewhere_until_ms_ ? elsewhere_ : ""; }
  bool is_left_by_all() const { return in_it_.empty(); }  // whose heartbeats came

  struct Nodes {
    std::function<bool(Seat)> is_reachable;                                 // both ports answer; true for this node
    std::function<std::vector<Seat>(const std::string& run)> last_members;  // the newest known view
  };
  // Returns the run to propose now, with the members that are asked (empty: all nodes). The pause after a failed
  // attempt doubles up to kMaxPauseMs. A state from which the run began kMaxTries times without reaching another is
  // excluded.
  std::optional<RunIdentity> next_proposal(const Nodes& nodes, std::uint64_t now_ms, std::uint64_t key);
  void set_failure(const std::string& why) { failure_ = why; }  // "": it was resumed

 private:
  static constexpr std::uint64_t kFirstPauseMs = 5'000, kMaxPauseMs = 600'000;
  static constexpr std::size_t kMaxTries = 3;
  static constexpr std::uint64_t kElsewhereMs = 5'000;                     // after the last heartbeat
  static constexpr std::uint64_t kSettleMs = 4 * schema::kMaxHeartbeatMs;  // without a change of reachable_
  std::optional<RunRecord> interrupted() const;
  std::optional<RunIdentity> identity_of(const RunRecord& record, std::uint64_t now_ms, std::uint64_t key);
  void show_next(const RunRecord& run, const std::string& missing) const;

  const RunContext& context_;
  const Resumption& resumption_;
  std::string elsewhere_;
  std::set<Seat> in_it_;
  std::uint64_t elsewhere_until_ms_ = 0;
  std::vector<Seat> reachable_;  // at the last call
  std::uint64_t reachable_since_ms_ = 0;
  std::string tried_run_;
  std::string failure_;  // why the last attempt failed
  std::uint64_t next_try_ms_ = 0, pause_ms_ = kFirstPauseMs;
};

}  // namespace tg::daemon
