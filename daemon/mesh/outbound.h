// The sending half of the mesh: a DEALER to every peer, hellos, and the frames that wait for a connection. Used by the
// node's thread, except where stated.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "daemon/access/keyring.h"
#include "daemon/mesh/link_table.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class Outbound {
 public:
  // The events of a new connection.
  struct Watched {
    Seat peer;
    std::uint64_t dial = 0;  // its Link::dials
    zmq::socket_t monitor;
  };
  Outbound(const MeshSelf& self, LinkTable& links, zmq::context_t& context, Keyring& keyring, schema::FramePool& pool,
           Log& log);

  void dial_all();  // throws zmq::error_t
  // As described in mesh.h.
  std::optional<Seat> send(const std::vector<Seat>& to, const schema::SharedFrame& frame);
  void tick(std::uint64_t now_ms);
  void forget_waiting();
  void forget_waiting(Seat peer);
  void end_events();  // of all monitors, before they are closed
  void close(int linger_ms);

  // --- any thread ---
  // How our newest connections fare (for next_event); each is taken once.
  std::vector<Watched> take_monitors();

 private:
  struct Way {
    zmq::socket_t dealer;
    std::deque<schema::SharedFrame> waiting;
    std::uint64_t last_hello_ms = 0, dialled_ms = 0;
    std::uint64_t greeted = 0;             // the incarnation that our last hello said to have heard
    std::uint64_t greeted_connection = 0;  // the connection that our last hello went out on
    std::size_t cluster = 0, tried = 0;    // which cluster key we dial with next, dials since it was connected
  };
  void dial(Seat peer, std::uint64_t now_ms);
  bool say_hello(Seat peer);
  bool push(Seat peer, const schema::SharedFrame& frame);
  bool put_on_wire(Seat peer, const schema::SharedFrame& frame);
  void flush(Seat peer);
  void take_refusals(Seat peer);

  const MeshSelf& self_;
  LinkTable& links_;
  zmq::context_t& context_;
  Keyring& keyring_;
  schema::FramePool& pool_;
  Log& log_;
  Per<Seat, Way> ways_;
  std::mutex mutex_;
  std::vector<Watched> monitors_;  // not taken yet
};

}  // namespace tg::daemon
