// The one queue into the node's thread: everything that happens to a node arrives here as an Event, in order. Any
// thread posts; the node's thread pops. Frames are bounded in bytes: a peer with more than kMaxQueuedBytesPerPeer in
// the queue is flooding, and its frames are dropped until the queued ones are popped; at kMaxQueuedBytes in all,
// post_frame waits. Other events are bounded by their senders: a few for each task, call or connection.
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
  std::chrono::steady_clock::time_point at{};  // it arrived, perhaps long before it is popped
};
struct ConnectionChanged {
  Seat peer;
  bool up = false;
};
struct PeerLost {  // liveness gave up on the peer, or the peer misbehaved
  Seat peer;
  std::string message;
  bool only_during_run = false;  // ignored without a run, as a restart is
  std::string run_id = {};       // the run that liveness watched; empty = any
};
struct PrepareProgress {  // the peer, or this node, made progress in preparing this run
  Seat peer;
  std::string run_id;
};
struct ForeignHeartbeat {  // the peer is in another view or run than this node
  Seat peer;
  schema::Heartbeat beat;
};
struct MisclassificationsFound {  // or an error
  std::uint64_t search_key = 0;
  Result<schema::Misclassifications> result;
};
struct StatesFound {  // on this node's disk, of a run that is to be resumed
  std::uint64_t run_key = 0;
  std::string run_id;
  RecoveryPoints found;
  bool known = true;  // false: this node has no such run, found.rejected says why
};
struct VoteWritten {
  std::uint64_t run_key = 0;
  std::string problem;  // "" = it is durable
};
struct RecordWritten {  // or an error: of a run that ended
  std::string run_id;
  Status status;
};
struct PeerLinesRead {  // the configuration file has changed; or why it cannot be used
  Result<schema::NodeConfig> config;
};
struct ShutDown {};
using Event = std::variant<FrameArrived, ConnectionChanged, PeerLost, PrepareProgress, ForeignHeartbeat, ControlCall,
                           RunPrepared, RunRebuilt, RunStepEvent, RunSaved, CheckpointWritten, HistoryRead,
                           MisclassificationsFound, StatesFound, VoteWritten, RecordWritten, PeerLinesRead, ShutDown>;

class EventQueue {
 public:
  enum class PostResult : std::uint8_t {
    kQueued,
    kFloodBegins,  // dropped, as the first frame of a flood
    kDropped,      // dropped, as the frames before it
  };
  explicit EventQueue(std::size_t nodes) : from_peers_(nodes) {}

  // Wakes the node's thread after releasing the lock, so that it finds the lock free.
  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_one();
  }
  PostResult post_frame(FrameArrived frame) {
    // A probe's filler is not needed after its arrival.
    if (auto* probe = std::get_if<schema::Probe>(&frame.frame.body)) {
      probe->filler = {};
      frame.frame.bytes = 0;
    }
    // Only payloads refer to the message; the content of other frames has been copied out of it.
    const schema::FrameBody& body = frame.frame.body;
    if (!std::holds_alternative<schema::Chunk>(body) && !std::holds_alternative<schema::SnapshotChunk>(body))
      frame.keep.reset();
    const std::size_t bytes = bytes_of(frame);
    {
      std::unique_lock lock(mutex_);
      FromPeer& from = from_peers_[frame.from];
      if (from.flooding || from.bytes + bytes > schema::kMaxQueuedBytesPerPeer) {
        ++dropped_;
        return std::exchange(from.flooding, true) ? PostResult::kDropped : PostResult::kFloodBegins;
      }
      room_.wait(lock, [&] { return frame_bytes_ + bytes <= schema::kMaxQueuedBytes || closed_; });
      if (closed_) return PostResult::kDropped;
      from.bytes += bytes;
      frame_bytes_ += bytes;
      events_.emplace_back(std::move(frame));
    }
    changed_.notify_one();
    return PostResult::kQueued;
  }
  // timeout = 0 does not wait.
  std::optional<Event> pop(std::chrono::microseconds timeout) {
    std::optional<Event> event;
    {
      std::unique_lock lock(mutex_);
      if (events_.empty() && timeout.count() == 0) return std::nullopt;
      if (!changed_.wait_for(lock, timeout, [this] { return !events_.empty(); })) return std::nullopt;
      event = std::move(events_.front());
      events_.pop_front();
      if (const auto* frame = std::get_if<FrameArrived>(&*event)) on_popped(*frame);
    }
    room_.notify_one();
    return event;
  }
  // Counts the frames that floods lost.
  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }
  void close() {  // nothing is popped any longer: threads that wait for room continue
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }

 private:
  struct FromPeer {
    std::size_t bytes = 0;  // queued frames
    bool flooding = false;  // until all of them are popped
  };

  static std::size_t bytes_of(const FrameArrived& frame) { return frame.frame.bytes + schema::kQueuedEventBytes; }
  void on_popped(const FrameArrived& frame) {
    FromPeer& from = from_peers_[frame.from];
    from.bytes -= bytes_of(frame);
    frame_bytes_ -= bytes_of(frame);
    if (from.bytes == 0) from.flooding = false;
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
