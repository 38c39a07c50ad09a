// The receiving half of the mesh, with a thread of its own: the ROUTER on this node's mesh port, who calls there, and
// how our own connections to the peers fare. It decides whether a link is up.
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

#include "daemon/access/connections.h"
#include "daemon/access/doorkeeper.h"
#include "daemon/access/keyring.h"
#include "daemon/mesh/link_table.h"
#include "daemon/mesh/mesh_hooks.h"
#include "daemon/mesh/outbound.h"
#include "kernels/base/log_throttle.h"

namespace tg::daemon {

class Inbound {
 public:
  // outbound: whose new connections are watched.
  Inbound(const MeshSelf& self, LinkTable& links, zmq::context_t& context, Keyring& keyring, schema::FramePool& pool,
          Log& log, MeshHooks hooks, Outbound& outbound);

  Status bind();  // throws zmq::error_t
  void start();   // the thread
  void stop();    // joins it, and closes the port
  void set_in_run(bool in_run, bool prepares) {
    prepares_ = prepares;
    in_run_ = in_run;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // A connection to our ROUTER.
  struct Sender {
    int descriptor = -1;
    std::string identity;      // of its key
    std::optional<Seat> seat;  // once its hello was taken
  };
  struct Peer {
    zmq::socket_t monitor;   // says how our connection to it fares
    std::uint64_t dial = 0;  // which one that is
    std::uint64_t connections = 0;
    std::string sender;      // its connection to us, "" = none
    std::uint64_t echo = 0;  // which one
    bool hears_us = false;   // says its last hello over it
    int bad_frames = 0;
    std::uint64_t cut_off_incarnation = 0;
    std::uint64_t rival = 0;  // the incarnation of another process that goes by its name
  };

  void receive_loop();
  bool receive_one();
  void take_monitors();
  void watch_connections();
  void watch_connection(Seat peer);
  void lost(Seat peer);
  void settle(Seat peer);
  void tick(Clock::time_point now);
  std::chrono::milliseconds most_silence() const;
  void end_gone_keys();
  bool has_another_key() const;
  void leave_links();
  bool key_changes(Seat peer) const;
  bool binds_anew(Seat peer) const;
  void bind_keys_of_now();
  Sender* sender_of(const std::string& id, zmq::message_t& body);
  void on_message(const std::string& id, std::shared_ptr<zmq::message_t> message);
  void on_hello(const std::string& id, Sender& sender, const schema::Hello& hello);
  std::optional<std::string> foreign(const schema::Hello& hello) const;
  void join(const std::string& id, Sender& sender, Seat peer, const schema::Hello& hello);
  bool is_rival(Seat peer, const std::string& id, const schema::Hello& hello) const;
  void on_rival(const std::string& id, Seat peer, const std::string& from, const schema::Hello& hello);
  void on_bad_frame(Sender& sender, const std::string& why);
  void refuse(const std::string& id, const std::string& why);
  void stranger(const std::string& from, const std::string& why);
  const std::string& name(Seat peer) const { return self_.config.peers[peer].name; }

  const MeshSelf& self_;
  LinkTable& links_;
  zmq::context_t& context_;
  Keyring& keyring_;
  schema::FramePool& pool_;
  Log& log_;
  const MeshHooks hooks_;
  Outbound& outbound_;
  Doorkeeper doorkeeper_;
  zmq::socket_t router_;
  std::unique_ptr<Connections> connections_;
  mutable std::mutex bound_mutex_;
  schema::KeyPair bound_;  // the pair that the ROUTER is bound with
  Per<Seat, Peer> peers_;
  std::map<std::string, Seat> seat_of_;
  std::map<std::string, Sender> senders_;  // of the open connections, by routing id
  Clock::time_point ticked_{}, counted_{}, rebound_ = Clock::now() - std::chrono::hours(1);
  LogThrottle strangers_;
  std::thread thread_;
  std::atomic<bool> stopping_{false}, in_run_{false}, prepares_{false};
};

}  // namespace tg::daemon
