// The sockets of the control port: a ROUTER on TCP (for clients and peers), one on a local socket that only this user
// may open (state-dir/control.sock, mode 0600), one DEALER per peer, and an eventfd that wakes the owner. Only
// control_sockets.cpp calls ZeroMQ for the control port; its exceptions end there.
// One owner thread, except wake(). Sends never wait: what cannot be sent now is not sent. A client that does not take
// its answers is cut off when kMaxUnreadBytes wait for it, or when it has the most of what may wait in all; above
// that nobody but who reads is answered until it has fallen. What a cut client still has queued is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/access/keyring.h"
#include "daemon/access/user.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

struct ClientMessage {
  std::string identity;  // the client to answer
  std::string bytes;
  std::string address;       // for messages to people
  User user;                 // of its key, as the key file is now; a user of the local socket is a member
  bool well_formed = false;  // identity and one part
};

class ControlSockets {
 public:
  // Binds and begins to connect; an error names the port and what to do.
  static Result<std::unique_ptr<ControlSockets>> open(const schema::NodeConfig& config, Keyring& keyring, Log& log);
  ~ControlSockets();

  // Returns when something can be received, wake() was called, or the time has passed.
  void wait(std::uint64_t timeout_ms);
  void wake();  // any thread

  // Handles connections over their limits, refused keys and changed keys. Call about every kLivenessTickMs.
  void tick();

  std::optional<ClientMessage> receive_client();
  // Bytes of answers that TCP clients have not taken, kMaxUnreadBytesPerPort at most.
  std::size_t untaken_bytes() const;
  // A reply from the peer's DEALER. Messages of several parts arrive as an empty one.
  std::optional<std::string> receive_peer(Seat peer);
  // False if the client has gone, or takes nothing now.
  bool send_client(const std::string& identity, const std::string& bytes);
  // False if there is no connection, or too much already waits for this peer.
  bool send_peer(Seat peer, const std::string& bytes);
  // Why the peer's control port cannot be used, as far as is known.
  std::string problem(Seat peer) const;
  // As problem(), if the ports reach each other but their keys do not match; "" otherwise.
  std::string refusal(Seat peer) const;

 private:
  struct Impl;
  explicit ControlSockets(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tg::daemon
