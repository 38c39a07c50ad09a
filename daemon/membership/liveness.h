// Is a peer alive, and does it make progress? Pure; fed by the control thread (beats, data seen, ticks).
//
//   no sign of life for peer-timeout:
//     "no sign of life from node-c for 10 s (its last beat said backward of step 12)"
//   beats go on, but a working phase makes no progress for step-timeout:
//     "node-c is stuck in backward of step 12 for 60 s"
//   waiting for others has twice that time, so that whoever they wait for is named first:
//     "node-c got nothing in reduce of step 12 for 120 s"
//   beats go on, but belong to no or another run for peer-timeout:
//     "node-c is up, but not in run R; was it restarted?"
//   its data arrive and no beat does, for three times peer-timeout (a control port that many ask, or that is bound with
//   another key, takes none for a moment):
//     "node-c is up, but no beat of it has come for 30 s; does it reach the control port of node-a?"
// Waiting may end before that: a member that has waited 3/2 of step-timeout names whom it waits for (daemon/run), and
// that is the limit that status shows. Our own compute counts as a member too. If our own ticks were late (the process
// was stopped), every deadline moves by the gap: a node that wakes up does not accuse the others of its own sleep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/control/control.h"
#include "schema/place.h"

namespace tg::daemon {

struct LivenessOptions {
  Per<Seat, std::string> names;
  Seat self;
  std::uint64_t peer_timeout_ms = 10'000;
};

struct Verdict {
  Seat seat;
  std::string message;
  std::string run_id = {};  // that was watched
};

// How long a member of the watched run has been in its phase.
struct PhaseTime {
  schema::Phase phase = schema::Phase::kIdle;
  std::uint64_t ms = 0;        // time without progress
  std::uint64_t limit_ms = 0;  // after so much it is left out
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options);

  void heard(Seat peer, std::uint64_t now_ms);                                // any data
  void beat(Seat peer, const schema::Heartbeat& beat, std::uint64_t now_ms);  // also our own, seat == self
  // Who has got on with preparing the watched run since this was last asked.
  std::vector<Seat> take_preparing();
  // Watching begins with a run (deadlines start now) and ends with it; without a run nobody is accused. Called at
  // PrepareRun it also finds a member that dies while it prepares; called again at BeginRun, and with each view of the
  // run, it starts anew. members: by seat, who may be accused; empty = all nodes.
  void watch(std::string run_id, std::uint64_t step_timeout_ms, std::uint64_t now_ms,
             const Per<Seat, bool>& members = {});
  void set_step_timeout(std::uint64_t step_timeout_ms);
  void unwatch();
  // Gives at most one verdict per member and watch. Call at least every 100 ms.
  std::vector<Verdict> tick(std::uint64_t now_ms);
  // For status: has the peer been heard within peer-timeout (or 3 s, whichever is less)?
  bool alive(Seat peer, std::uint64_t now_ms) const;
  // For status: the last beat's phase; nothing without a run, or before a beat of it has come.
  std::optional<PhaseTime> phase_time(Seat seat, std::uint64_t now_ms) const;

 private:
  struct Member {
    std::optional<std::uint64_t> heard_ms;
    // Where deadlines start: the last such event, or when watching began, later by the time that we slept.
    std::uint64_t quiet_ms = 0;             // sign of life
    std::uint64_t in_run_ms = 0;            // beat of the watched run
    std::uint64_t elsewhere_ms = 0;         // beat of no or another run, since watching began
    std::uint64_t progress_ms = 0;          // change of phase, step or progress
    std::optional<schema::Heartbeat> beat;  // the last one of the watched run
    bool accused = false;                   // or nobody to be accused
    bool prepares = false;                  // and has got on with it
  };

  std::string accusation(Seat seat, std::uint64_t now_ms) const;  // "" = none

  LivenessOptions options_;
  Per<Seat, Member> members_;
  std::string run_id_;
  bool watching_ = false;
  std::uint64_t step_timeout_ms_ = 0;
  std::optional<std::uint64_t> ticked_ms_;
};

}  // namespace tg::daemon
