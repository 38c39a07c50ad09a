// Authenticates the connections to a port: libzmq sends a ZAP request (RFC 27) for each one before a byte of it is
// queued. With keys, every key in the keyring is accepted; without keys, every allowed address. Refusals are counted,
// and logged at most once a minute. A connection's identity (User-Id) is its public key; the keyring says at each
// request and hello what that key may do.
//
// One per ZeroMQ context, in its own thread, bound before any port. By default libzmq accepts every connection if the
// handler has died; secure() sets the option that refuses them all instead (ZMQ_ZAP_ENFORCE_DOMAIN).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "daemon/access/keyring.h"
#include "daemon/access/networks.h"
#include "daemon/access/user.h"
#include "kernels/base/log.h"
#include "kernels/base/log_throttle.h"

namespace tg::daemon {

class ZapAuthenticator {
 public:
  // port: "mesh" or "control", for messages. allowed: used without keys.
  ZapAuthenticator(zmq::context_t& context, std::string port, Keyring& keyring, Networks allowed, Log& log);
  // Afterwards every connection is refused.
  ~ZapAuthenticator();

  // Binds and begins to answer. Throws zmq::error_t.
  void start();
  // Prepares a socket that will be bound to TCP. own: the socket's key pair, if there are keys. Throws zmq::error_t.
  void secure(zmq::socket_t& socket, const schema::KeyPair& own);

  // Binds a secured socket again with another key pair; its connections are cut and reconnect. libzmq releases the port
  // with a delay, so each call tries to bind until it succeeds. Returns true once it has.
  bool rebind(zmq::socket_t& socket, const schema::KeyPair& own);

  std::uint64_t refused() const { return refused_; }

 private:
  struct ZapRequest {
    std::string address, mechanism, credentials;
  };
  void loop();
  void answer_request();
  std::optional<std::string> authenticate(const ZapRequest& request);  // returns the identity
  void refuse(const ZapRequest& request);

  const std::string port_;
  Keyring& keyring_;
  Networks allowed_;
  Log& log_;
  zmq::socket_t requests_;
  std::thread thread_;
  std::string unbound_;  // the endpoint while rebind() is in progress; used by the secured socket's thread
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> refused_{0};
  LogThrottle throttle_;
};

}  // namespace tg::daemon
