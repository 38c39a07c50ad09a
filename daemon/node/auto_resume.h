// When a run goes on without being asked (the job's auto-resume): the newest one, if it was interrupted, as soon as
// those are there who were members in the end; the first of these proposes it. Whoever was away comes into it once it
// is on, and where nobody can be given the state all nodes are awaited. Nothing is proposed while a run is on
// elsewhere. Also says in status whom it waits for. Node's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/resumption.h"
#include "daemon/run/run_context.h"

namespace tg::daemon {

class AutoResume {
 public:
  AutoResume(const RunContext& context, const Resumption& resumption) : context_(context), resumption_(resumption) {}

  // A beat of a run that is on and that this node is not in.
  void hears_of(const std::string& run, std::uint64_t now_ms);
  // That run; "" if there was no beat lately.
  std::string on_elsewhere(std::uint64_t now_ms) const { return now_ms < elsewhere_until_ms_ ? elsewhere_ : ""; }

  struct Nodes {
    std::function<bool(Seat)> there;                                        // both ports answer; this node is
    std::function<std::vector<Seat>(const std::string& run)> last_members;  // of the newest view that this node knows
  };
  // The run that is to be proposed now, with who is asked to take part (none: all nodes). After a try that came to
  // nothing the next one is later, doubling up to kLatestTryMs. Where the run began kMaxTries times at one state and
  // came to no other, it is not to begin there again.
  std::optional<RunIdentity> due(const Nodes& nodes, std::uint64_t now_ms, std::uint64_t key);
  void came_to(const std::string& why_nothing) { why_nothing_ = why_nothing; }  // "": it goes on

 private:
  static constexpr std::uint64_t kFirstTryMs = 5'000, kLatestTryMs = 600'000;
  static constexpr std::size_t kMaxTries = 3;
  static constexpr std::uint64_t kElsewhereMs = 5'000;  // after the last beat
  static constexpr std::uint64_t kFirstBeatsMs =
      4 * schema::kMaxHeartbeatMs;  // of who has come, or had been there before
  std::optional<RunRecord> interrupted() const;
  std::optional<RunIdentity> identity_of(const RunRecord& record, std::uint64_t now_ms, std::uint64_t key);
  void show_next(const RunRecord& run, const std::string& away) const;

  const RunContext& context_;
  const Resumption& resumption_;
  std::string elsewhere_;
  std::uint64_t elsewhere_until_ms_ = 0;
  std::vector<Seat> there_;  // these nodes, as it was looked last
  std::uint64_t there_since_ms_ = 0;
  std::string tried_;        // this run
  std::string why_nothing_;  // came of the last try
  std::uint64_t next_try_ms_ = 0, pause_ms_ = kFirstTryMs;
};

}  // namespace tg::daemon
