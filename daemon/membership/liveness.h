// Liveness suspects members that show no sign of life or make no progress. Pure; the control thread passes it
// heartbeats, data seen, and ticks.
//
//   no sign of life for peer-timeout:
//     "no sign of life from node-c for 10 s (its last heartbeat said backward of step 12)"
//   heartbeats go on, but a working phase makes no progress for step-timeout:
//     "node-c is stuck in backward of step 12 for 60 s"
//   waiting for others has twice that time, so that the member they wait for is suspected first:
//     "node-c received nothing in reduce of step 12 for 120 s"
//   heartbeats go on, but belong to no or another run for peer-timeout:
//     "node-c is up, but not in run R; was it restarted?"
//   its data arrive and no heartbeat does, for three times peer-timeout (a control port that many ask, or that is bound
//   with another key, takes none for a moment):
//     "node-c is up, but sent no heartbeat for 30 s; does it reach the control port of node-a?"
// Waiting may end before that: a member that has waited 3/2 of step-timeout names the members it waits for
// (daemon/run), and status shows that limit. This node's own compute is watched as well. If its ticks were late (the
// process was stopped), every deadline moves by the gap: a node that wakes up does not suspect the others of its own
// sleep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/control/control.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

struct LivenessOptions {
  schema::NodeList names;
  Seat self;
  std::uint64_t peer_timeout_ms = 10'000;
};

struct Suspicion {
  Seat seat;
  std::string message;
  std::string run_id = {};  // the watched run
};

// How long a member of the watched run has been in its phase.
struct PhaseTime {
  schema::Phase phase = schema::Phase::kIdle;
  std::uint64_t ms = 0;        // time without progress
  std::uint64_t limit_ms = 0;  // then it is evicted
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options);

  void on_data(Seat peer, std::uint64_t now_ms);  // any data. A heartbeat may be this node's own
  void on_heartbeat(Seat peer, const schema::Heartbeat& beat, std::uint64_t now_ms);
  // The seats that have made progress in preparing the watched run since the last call.
  std::vector<Seat> take_prepare_progress();
  // Watching begins with a run (deadlines start now) and ends with it; without a run no node is suspected. Called at
  // PrepareRun it also finds a member that dies while it prepares; called again at BeginRun, and with each view of the
  // run, it starts anew. members: by seat, those that may be suspected; empty = all.
  void watch(std::string run_id, std::uint64_t step_timeout_ms, std::uint64_t now_ms,
             const Per<Seat, bool>& members = {});
  void set_step_timeout(std::uint64_t step_timeout_ms);
  void unwatch();
  // At most one suspicion per member and watch. Call at least every 100 ms.
  std::vector<Suspicion> tick(std::uint64_t now_ms);
  // For status: has the peer been heard within peer-timeout (or 3 s, whichever is less)?
  bool is_alive(Seat peer, std::uint64_t now_ms) const;
  // For status: the last beat's phase; nothing without a run, or before a beat of it has come.
  std::optional<PhaseTime> phase_time(Seat seat, std::uint64_t now_ms) const;

 private:
  struct Member {
    std::optional<std::uint64_t> heard_ms;
    // Where deadlines start: the last such event, or when watching began, later by the time that this process slept.
    std::uint64_t quiet_ms = 0;             // sign of life
    std::uint64_t in_run_ms = 0;            // beat of the watched run
    std::uint64_t elsewhere_ms = 0;         // beat of no or another run, since watching began
    std::uint64_t progress_ms = 0;          // change of phase, step or progress
    std::optional<schema::Heartbeat> beat;  // the last one of the watched run
    bool suspected = false;                 // or not watched
    bool prepares = false;                  // and has made progress
  };

  std::string suspicion(Seat seat, std::uint64_t now_ms) const;  // "" = none

  LivenessOptions options_;
  Per<Seat, Member> members_;
  std::string run_id_;
  bool watching_ = false;
  std::uint64_t step_timeout_ms_ = 0;
  std::optional<std::uint64_t> ticked_ms_;
};

}  // namespace tg::daemon
