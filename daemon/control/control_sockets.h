// The sockets of the control port: a ROUTER on TCP (for clients and peers), a ROUTER on a local socket that only this
// user may open (state-dir/control.sock, mode 0600), one DEALER per peer, and an eventfd that wakes the owner. Only
// control_sockets.cpp calls ZeroMQ for the control port; its exceptions end there.
// One owner thread, except wake(). Sends never wait: what cannot be sent now is not sent. A client that does not read
// its answers is cut when kMaxUnreadBytes are unread, or when the port is at its limit and this client has the most
// unread. At the limit only clients that read are answered. The queued requests of a cut client are dropped.
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
  std::string address;       // for messages to users
  User user;                 // by the current key file; a user of the local socket is a member
  bool well_formed = false;  // identity and one part
};

class ControlSockets {
 public:
  // Binds and begins to connect; an error names the port and what to do.
  static Result<std::unique_ptr<ControlSockets>> open(const schema::NodeConfig& config, Keyring& keyring, Log& log);
  ~ControlSockets();

  // Returns when a message can be received, after wake(), or when the time has passed.
  void wait(std::uint64_t timeout_ms);
  void wake();  // any thread

  // Cuts connections over their limits and applies changed keys. Called about every kLivenessTickMs.
  void tick();

  std::optional<ClientMessage> receive_client();
  // Bytes of answers that TCP clients have not read, at most kMaxUnreadBytesPerPort.
  std::size_t unread_bytes() const;
  // A reply from the peer's control port. A message of several parts is returned as an empty one.
  std::optional<std::string> receive_peer(Seat peer);
  // False if the client has gone, or cannot be sent to now.
  bool send_client(const std::string& identity, const std::string& bytes);
  // False if there is no connection, or too much already waits for this peer.
  bool send_peer(Seat peer, const std::string& bytes);
  // Why the peer's control port cannot be used; "" if it can, as far as is known.
  std::string problem(Seat peer) const;
  // The same if the ports reach each other but their keys do not match; "" otherwise.
  std::string refusal(Seat peer) const;

 private:
  struct Impl;
  explicit ControlSockets(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tg::daemon
