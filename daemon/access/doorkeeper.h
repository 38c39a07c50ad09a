// Decides who may connect to a port: libzmq asks for every connection before a byte of it is queued (ZAP, RFC 27). With
// keys, every key that the keyring knows is accepted; without, every allowed address. Refusals are counted and logged,
// at most once a minute. A connection's identity (User-Id) is its public key; what that may do is asked of
// the keyring at each request and hello.
//
// One per ZeroMQ context, in its own thread, bound before any port. libzmq would let everybody in if the handler died;
// guard() therefore also sets an option that refuses everybody in that case (ZMQ_ZAP_ENFORCE_DOMAIN).
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

class Doorkeeper {
 public:
  // port: "mesh" or "control", for messages. allowed: used without keys.
  Doorkeeper(zmq::context_t& context, std::string port, Keyring& keyring, Networks allowed, Log& log);
  // Afterwards everybody is refused.
  ~Doorkeeper();

  // Binds and begins to answer. Throws zmq::error_t.
  void start();
  // Sets up a socket that will be bound to TCP; its address family must be chosen before. `own` is the socket's pair,
  // if there are keys. Throws zmq::error_t.
  void guard(zmq::socket_t& socket, const schema::KeyPair& own);

  // Binds a guarded socket again, with another pair: connections are cut off and dial again. libzmq releases the port
  // in its own time, so binding is tried at each call until it succeeds. True once it has.
  bool rebind(zmq::socket_t& socket, const schema::KeyPair& own);

  std::uint64_t refused() const { return refused_; }

 private:
  struct Knock {
    std::string address, mechanism, credentials;
  };
  void loop();
  void answer_one();
  std::optional<std::string> admit(const Knock& knock);  // the identity
  void refuse(const Knock& knock);

  const std::string port_;
  Keyring& keyring_;
  Networks allowed_;
  Log& log_;
  zmq::socket_t requests_;
  std::thread thread_;
  std::string unbound_;  // the endpoint, while rebind() is at it; of the guarded socket's thread
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> refused_{0};
  LogThrottle lines_;
};

}  // namespace tg::daemon
