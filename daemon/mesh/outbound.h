// The sending half of the mesh: a DEALER to every peer, the hellos, and the queues of frames that wait for a
// connection. Used by the node's thread, except where stated.
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
  // A new connection with its event monitor.
  struct MonitoredConnection {
    Seat peer;
    std::uint64_t dial = 0;  // the value of Link::dials for it
    zmq::socket_t monitor;
  };
  Outbound(const MeshIdentity& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
           schema::FramePool& pool, Log& log);

  void dial_all();  // throws zmq::error_t
  // As described in mesh.h.
  std::optional<Seat> send(const std::vector<Seat>& to, const schema::SharedFrame& frame);
  void tick(std::uint64_t now_ms);
  void drop_queued();
  void drop_queued(Seat peer);
  void stop_events();  // called before the monitors are closed
  void close(int linger_ms);

  // --- any thread ---
  // The monitors of the newest connections (for next_event); each is returned once.
  std::vector<MonitoredConnection> take_monitors();

 private:
  struct Peer {
    zmq::socket_t dealer;  // none before an address is known
    std::string host;      // its address, in digits
    std::string line;      // the host:port of its peer line that was dialled
    std::deque<schema::SharedFrame> queue;
    std::uint64_t last_hello_ms = 0, dialled_ms = 0, connected_ms = 0;
    std::uint64_t hello_heard = 0;           // the peer's incarnation in our last hello
    std::uint64_t hello_connection = 0;      // the connection that carried our last hello
    std::size_t next_key = 0, attempts = 0;  // the next cluster key; dials since the last connection
  };
  bool follow_line(Seat peer, std::uint64_t now_ms);
  void dial_next(Seat peer, std::uint64_t now_ms, bool again);
  void dial(Seat peer, std::uint64_t now_ms);
  bool send_hello(Seat peer);
  bool send_frame(Seat peer, const schema::SharedFrame& frame);
  bool write_frame(Seat peer, const schema::SharedFrame& frame);
  void flush(Seat peer);
  void read_refusals(Seat peer);

  const MeshIdentity& self_;
  LinkTable& links_;
  zmq::context_t& context_;
  Keyring& keyring_;
  schema::FramePool& pool_;
  Log& log_;
  Per<Seat, Peer> peers_;
  std::mutex mutex_;
  std::vector<MonitoredConnection> monitors_;  // waiting for take_monitors()
};

}  // namespace tg::daemon
