// The mesh: one ROUTER bound on this node's mesh port, one DEALER to every peer; data flows DEALER -> ROUTER. Only a
// refusal goes the other way.
//
// The receiving side has a thread of its own: it takes frames off the ROUTER, has them validated (schema::decode_frame
// is where peer bytes become trusted), ties each connection to a peer by its hello and hands frames to the hooks. The
// name in a hello must be the one that the connection's key proves. The sending side belongs to the node's thread: the
// DEALERs, hellos and the frames that wait for a connection.
//
// A link is up when both directions have been seen to work: the peer's hello came, and it says that it heard ours. It
// is down as soon as TCP says so: a killed process is seen at once, without waiting for peer-timeout. Between runs it
// is down, too, and dialled again, when one direction has been silent for some seconds. A second process under a peer's
// name is refused, and told so, as long as the first one answers; the one that our own connection reaches always wins.
//
// A sender of malformed frames is counted, named and, after kMostBadFrames, ignored until it restarts. Connections that
// say nothing or never end a message are cut (daemon/sockets/connections.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/sockets/keyring.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

struct LinkBytes {  // ZeroMQ framing included
  std::uint64_t sent = 0, received = 0;
};

struct RefusedFrames {
  std::uint64_t malformed = 0;  // of peers
  std::uint64_t strangers = 0;  // of whoever is no peer
};

struct LinkProblem {
  std::string why;             // names the peer or what it refuses; for people
  bool waiting_helps = false;  // a cable, a name or a process may come back; another build or key does not
};

class Mesh {
 public:
  // Called on the receiving thread; may block while the node's queue is full (ZeroMQ and TCP then hold the peers back).
  struct Hooks {
    std::function<void(Seat, schema::Frame, std::shared_ptr<const void> keep)> frame;
    std::function<void(Seat, bool up)> connection;
    std::function<void(Seat, std::string what)> misbehaved;  // restarted in the middle, malformed frames
    std::function<void(Seat)> heard;                         // any valid bytes
  };
  Mesh(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build, Keyring& keyring,
       schema::FramePool& pool, Log& log, Hooks hooks);
  ~Mesh();

  // Binds, connects, starts the receiving thread. Errors name the port and the next action.
  Status start();

  // --- the node's thread ---
  // Never blocks. Returns a peer that takes nothing any more, if there is one: kMostWaitingFrames wait for it already.
  std::optional<Seat> send(const std::vector<Seat>& to, const schema::SharedFrame& frame);
  void tick(std::uint64_t now_ms);  // hellos, frames that waited
  void forget_waiting();            // of a run that ended
  // Between runs silent links are dialled again, and keys that changed are bound.
  void set_in_run(bool in_run);
  void close(int linger_ms);  // of the sending side

  // --- any thread ---
  std::uint64_t sent_bytes() const;  // to all
  LinkBytes bytes(Seat peer) const;
  RefusedFrames refused() const;
  bool up(Seat peer) const;
  std::uint64_t incarnation(Seat peer) const;  // as its hello said, 0 = none came
  std::uint16_t weight(Seat seat) const;       // the same; 1 as long as none came
  // What is wrong with the link to a peer, as far as this node knows; nothing where it is up and nobody else claims
  // the peer's name.
  std::optional<LinkProblem> problem(Seat peer) const;
  void stop_receiving();  // joins the receiving thread

  static constexpr std::size_t kMostWaitingFrames = 65536;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
