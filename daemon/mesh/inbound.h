// The receiving half of the mesh, with a thread of its own: owns the ROUTER on this node's mesh port, identifies its
// senders, watches this node's outgoing connections, and decides whether a link is up.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "daemon/access/accepted_connections.h"
#include "daemon/access/keyring.h"
#include "daemon/access/zap_authenticator.h"
#include "daemon/mesh/link_table.h"
#include "daemon/mesh/mesh_hooks.h"
#include "daemon/mesh/outbound.h"
#include "kernels/base/log_throttle.h"

namespace tg::daemon {

class Inbound {
 public:
  // Watches the connections that outbound opens.
  Inbound(const MeshIdentity& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
          schema::FramePool& pool, Log& log, MeshHooks hooks, Outbound& outbound);

  Status bind();  // throws zmq::error_t
  void start();   // starts the thread
  void stop();    // joins it and closes the port
  void set_run_phase(bool in_run, bool prepares) {
    prepares_ = prepares;
    in_run_ = in_run;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // An incoming connection.
  struct Sender {
    int descriptor = -1;
    std::string identity;      // from its key
    std::optional<Seat> seat;  // set by its hello
    bool refused = false;      // and the log says so
  };
  struct Peer {
    zmq::socket_t monitor;   // the events of our connection to it
    std::uint64_t dial = 0;  // the number of that connection
    std::uint64_t connections = 0;
    std::string sender;      // routing id of its connection to us; "" = none
    std::uint64_t echo = 0;  // the newest of our hellos that it has echoed
    bool hears_us = false;   // according to its last hello
    int bad_frames = 0;
    std::uint64_t cut_off_incarnation = 0;
    std::uint64_t duplicate = 0;  // the incarnation of another process with its name
  };

  void receive_loop();
  bool receive_one();
  void take_monitors();
  void watch_connections();
  void watch_connection(Seat peer);
  void mark_down(Seat peer);
  void update_link(Seat peer);
  void tick(Clock::time_point now);
  std::chrono::milliseconds max_silence() const;
  void close_revoked();
  bool key_changed() const;
  void take_links_down();
  bool is_rekeying(Seat peer) const;
  bool peer_will_rebind(Seat peer) const;
  void rebind_port();
  Sender* sender_of(const std::string& id, zmq::message_t& body);
  void on_message(const std::string& id, std::shared_ptr<zmq::message_t> message);
  void on_hello(const std::string& id, Sender& sender, const schema::Hello& hello);
  std::optional<std::string> incompatibility(const schema::Hello& hello) const;
  void adopt(const std::string& id, Sender& sender, Seat peer, const schema::Hello& hello);
  bool is_duplicate(Seat peer, const std::string& id, const schema::Hello& hello) const;
  void on_duplicate(const std::string& id, Seat peer, const std::string& from, const schema::Hello& hello);
  void on_bad_frame(Sender& sender, const std::string& why);
  void refuse(const std::string& id, const std::string& why);
  void report_unknown(const std::string& from, const std::string& why);
  const std::string& name(Seat peer) const { return self_.config.nodes[peer]; }

  const MeshIdentity& self_;
  LinkTable& links_;
  zmq::context_t& context_;
  Keyring& keyring_;
  schema::FramePool& pool_;
  Log& log_;
  const MeshHooks hooks_;
  Outbound& outbound_;
  ZapAuthenticator authenticator_;
  zmq::socket_t router_;
  std::unique_ptr<AcceptedConnections> connections_;
  mutable std::mutex bound_mutex_;
  schema::KeyPair bound_;  // the key pair of the bound ROUTER
  Per<Seat, Peer> peers_;
  std::map<std::string, Sender> senders_;  // open connections, by routing id
  Clock::time_point ticked_{}, counted_{}, rebound_ = Clock::now() - std::chrono::hours(1);
  LogThrottle unknown_throttle_;
  std::thread thread_;
  std::atomic<bool> stopping_{false}, in_run_{false}, prepares_{false};
};

}  // namespace tg::daemon
