// An outgoing connection: a DEALER that connects to one port, and the events of its connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "daemon/access/socket_options.h"
#include "schema/keys/keys.h"

namespace tg::daemon {

// The keys for connecting to a port that requires keys.
struct Credentials {
  schema::KeyPair own;
  schema::Key server{};  // the port's public key
};

struct Connection {
  zmq::socket_t dealer;
  zmq::socket_t monitor;  // read by next_event; may move to another thread

  Connection() = default;
  Connection(Connection&&) = default;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection() { stop_events(dealer); }

  // Stops the events. The dealer's thread calls it before the monitor or the dealer is closed: an event without a
  // reader blocks libzmq's I/O thread forever, and every other connection with it.
  static void stop_events(zmq::socket_t& dealer) noexcept;
};

// Throws zmq::error_t.
Connection dial(zmq::context_t& context, const SocketOptions& options, const std::optional<Credentials>& credentials,
                const std::string& endpoint);

enum class ConnectionEvent : std::uint8_t {
  kConnected,          // the handshake has succeeded
  kDisconnected,       // libzmq retries
  kKeyRefused,         // the port has the expected key but does not know ours; libzmq gives up
  kMechanismMismatch,  // keys on one side only; libzmq may give up
  kHandshakeFailed,    // the port has another key, or speaks another protocol; libzmq may give up
  kSilent,             // the port accepted the connection and sent nothing during the handshake; libzmq may give up
};
// The next event, if there is one.
std::optional<ConnectionEvent> next_event(zmq::socket_t& monitor);

// A failed attempt to connect to a peer's port.
struct ConnectFailure {
  const std::string& place;  // host:port
  const std::string& peer;   // the node that the peer line names
  const std::string& own;
  bool has_keys = false;    // this node has keys
  bool key_of_peer = true;  // the port's key is the peer's own, not one shared by all nodes
};
// The cause, for one of the last four events, and what to do. Names no cause that is uncertain.
std::string explain_failure(ConnectionEvent event, const ConnectFailure& failure);

}  // namespace tg::daemon
