// A DEALER that connects to one port, and the events of its connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "daemon/access/socket_options.h"
#include "schema/keys/keys.h"

namespace tg::daemon {

// The keys used to connect to a port with keys.
struct Introduction {
  schema::KeyPair own;
  schema::Key server{};  // the port's public key
};

struct Dial {
  zmq::socket_t dealer;
  zmq::socket_t monitor;  // for next_event; another thread may take it over

  Dial() = default;
  Dial(Dial&&) = default;
  Dial& operator=(Dial&& other) noexcept;
  ~Dial() { end_events(dealer); }

  // No event comes any more. Before the monitor or the dealer is closed, by the dealer's thread: an event that nobody
  // can take holds up libzmq's thread for ever, and every other connection with it.
  static void end_events(zmq::socket_t& dealer) noexcept;
};

// Throws zmq::error_t.
Dial dial(zmq::context_t& context, const SocketOptions& options, const std::optional<Introduction>& introduction,
          const std::string& endpoint);

enum class DialEvent : std::uint8_t {
  kConnected,        // through the handshake
  kDisconnected,     // libzmq tries again
  kKeyRefused,       // the port has the key that we expect, but does not know ours; libzmq gives up
  kOtherMechanism,   // keys on one side only; libzmq may give up
  kHandshakeFailed,  // the port has another key, or it speaks something else; libzmq may give up
  kSilent,           // the port took the connection and said nothing until the handshake's end; libzmq may give up
};
// The next event, if there is one.
std::optional<DialEvent> next_event(zmq::socket_t& monitor);

// A port that does not let us in, and how it was dialled.
struct ClosedDoor {
  const std::string& place;  // host:port
  const std::string& peer;   // whom the peer line says to be there
  const std::string& own;
  bool has_keys = false;    // we have
  bool key_of_peer = true;  // the port's key is the peer's own, not one that all nodes have
};
// Why, for one of the last four events, and what to do. Names no cause that is not certain.
std::string why_closed(DialEvent event, const ClosedDoor& door);

}  // namespace tg::daemon
