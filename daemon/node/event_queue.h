// The one queue into the node's thread. Everything that happens to a node arrives here as an Event, in order.
// Any thread posts; the node's thread pops. Frames are bounded in bytes: a peer whose frames take more than
// kMaxQueuedBytesPerPeer is flooding, and its frames are dropped until the waiting ones are taken; if all together
// take kMaxQueuedBytes, post_frame waits. Everything else is bounded by its sender: a few events for each piece of
// work, call or connection.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "daemon/control/control_server.h"
#include "daemon/run/run_context.h"
#include "daemon/store/recovery_points.h"
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
struct PeerPrepares {  // it, or this node, got on with preparing this run
  Seat peer;
  std::string run_id;
};
struct PeerBeats {  // in another view, or run, than this node
  Seat peer;
  std::string run_id;
  std::uint32_t lineage = 1, view = 0;
};
struct MistakesFound {  // or not
  std::uint64_t key = 0;
  Result<schema::Misclassifications> result;
};
struct StatesFound {  // of a run that is to go on, on this node's disk
  std::uint64_t key = 0;
  std::string run_id;
  RecoveryPoints found;
  bool known = true;  // false: it is no run of this node's, found.rejected says why
};
struct ShutDown {};
using Event =
    std::variant<FrameArrived, ConnectionChanged, PeerLost, PeerPrepares, PeerBeats, ControlCall, RunPrepared,
                 RunFitted, StepHappened, RunSaved, CheckpointWritten, HistoryRead, MistakesFound, StatesFound, ShutDown>;

class EventQueue {
 public:
  enum class Posted : std::uint8_t {
    kQueued,
    kFloods,   // dropped; the first one of a flood
    kDropped,  // dropped like those before it
  };
  explicit EventQueue(std::size_t nodes) : from_peers_(nodes) {}

  // Wakes the other thread after giving the lock back, so that it finds the lock free.
  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_one();
  }
  Posted post_frame(FrameArrived frame) {
    // A probe's filler has done its work by arriving.
    if (auto* probe = std::get_if<schema::Probe>(&frame.frame.body)) {
      probe->filler = {};
      frame.frame.bytes = 0;
    }
    // Only payloads lie in the message; what other frames say has been copied out of it, and is no larger.
    const schema::FrameBody& body = frame.frame.body;
    if (!std::holds_alternative<schema::Chunk>(body) && !std::holds_alternative<schema::SnapshotChunk>(body))
      frame.keep.reset();
    const std::size_t bytes = bytes_of(frame);
    {
      std::unique_lock lock(mutex_);
      FromPeer& from = from_peers_[frame.from];
      if (from.floods || from.bytes + bytes > schema::kMaxQueuedBytesPerPeer) {
        ++dropped_;
        return std::exchange(from.floods, true) ? Posted::kDropped : Posted::kFloods;
      }
      room_.wait(lock, [&] { return frame_bytes_ + bytes <= schema::kMaxQueuedBytes || closed_; });
      if (closed_) return Posted::kDropped;
      from.bytes += bytes;
      frame_bytes_ += bytes;
      events_.emplace_back(std::move(frame));
    }
    changed_.notify_one();
    return Posted::kQueued;
  }
  // at_most = 0 takes only what is there.
  std::optional<Event> pop(std::chrono::microseconds at_most) {
    std::optional<Event> event;
    {
      std::unique_lock lock(mutex_);
      if (events_.empty() && at_most.count() == 0) return std::nullopt;
      if (!changed_.wait_for(lock, at_most, [this] { return !events_.empty(); })) return std::nullopt;
      event = std::move(events_.front());
      events_.pop_front();
      if (const auto* frame = std::get_if<FrameArrived>(&*event)) taken(*frame);
    }
    room_.notify_one();
    return event;
  }
  // Frames of floods.
  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }
  void close() {  // nothing is popped any longer: threads waiting for room continue
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }

 private:
  struct FromPeer {
    std::size_t bytes = 0;  // of its frames here
    bool floods = false;    // until they are all taken
  };

  static std::size_t bytes_of(const FrameArrived& frame) { return frame.frame.bytes + schema::kQueuedEventBytes; }
  void taken(const FrameArrived& frame) {
    FromPeer& from = from_peers_[frame.from];
    from.bytes -= bytes_of(frame);
    frame_bytes_ -= bytes_of(frame);
    if (from.bytes == 0) from.floods = false;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_, room_;
  std::deque<Event> events_;
  Per<Seat, FromPeer> from_peers_;
  std::size_t frame_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool closed_ = false;
};

}  // namespace tg::daemon
