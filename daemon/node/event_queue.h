// The one queue into the node's thread. Everything that happens to a node arrives here as an Event, in order.
// Any thread posts; the node's thread pops. Frames are posted with post_bounded, which waits while kMostQueuedEvents
// are queued.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "daemon/control/control_server.h"
#include "daemon/run/run_context.h"
#include "schema/frame/frame.h"
#include "schema/limits.h"
#include "schema/place.h"

namespace tg::daemon {

struct FrameArrived {
  Seat from;
  schema::Frame frame;
  std::shared_ptr<const void> keep;
  std::chrono::steady_clock::time_point at{};  // of its arrival, which may be long before its turn
};
struct ConnectionChanged {
  Seat peer;
  bool up = false;
};
struct PeerLost {  // liveness gave up on it, or it misbehaved
  Seat peer;
  std::string message;
  bool only_in_a_run = false;  // a restart is news to a run only
  std::string run_id = {};     // the run that liveness watched; empty = whichever there is
};
struct Benched {
  std::uint64_t key = 0;
  Result<schema::BenchReply> result;
};
struct ShutDown {};
using Event = std::variant<FrameArrived, ConnectionChanged, PeerLost, ControlCall, RunPrepared, StepHappened, RunSaved,
                           CheckpointWritten, Benched, ShutDown>;

class EventQueue {
 public:
  // Wakes the other thread after giving the lock back, so that it finds the lock free.
  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_one();
  }
  void post_bounded(Event event) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return events_.size() < schema::kMostQueuedEvents || closed_; });
      if (closed_) return;
      events_.push_back(std::move(event));
    }
    changed_.notify_one();
  }
  // at_most 0: only what is there.
  std::optional<Event> pop(std::chrono::microseconds at_most) {
    std::optional<Event> event;
    {
      std::unique_lock lock(mutex_);
      if (events_.empty() && at_most.count() == 0) return std::nullopt;
      if (!changed_.wait_for(lock, at_most, [this] { return !events_.empty(); })) return std::nullopt;
      event = std::move(events_.front());
      events_.pop_front();
    }
    room_.notify_one();
    return event;
  }
  void close() {  // nobody pops any more: those who wait for room go on
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_, room_;
  std::deque<Event> events_;
  bool closed_ = false;
};

}  // namespace tg::daemon
