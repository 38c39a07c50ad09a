// Who may connect to a port: asked by libzmq for every connection before a byte of it is queued (ZAP, RFC 27). With
// keys, whoever has one that the keyring knows; without, whoever calls from an allowed address. What is refused is
// counted and logged, at most once a minute.
//
// One per ZeroMQ context, in a thread of its own, bound before any port. libzmq lets everybody in where a handler has
// died; guard() therefore also sets an option that refuses everybody then (ZMQ_ZAP_ENFORCE_DOMAIN).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "daemon/access/keyring.h"
#include "daemon/access/networks.h"
#include "daemon/access/seldom.h"
#include "daemon/access/user.h"
#include "kernels/base/log.h"

namespace tg::daemon {

class Doorkeeper {
 public:
  // port: "mesh" or "control", for messages. allowed: without keys.
  Doorkeeper(zmq::context_t& context, std::string port, Keyring& keyring, Networks allowed, Log& log);
  // Everybody is refused from then on.
  ~Doorkeeper();

  // Binds and begins to answer. Throws zmq::error_t.
  void start();
  // Sets up a socket that will be bound to TCP, its address family chosen. `own` is the socket's pair, where there are
  // keys. Throws zmq::error_t.
  void guard(zmq::socket_t& socket, const schema::KeyPair& own);

  // A guarded socket that is bound already, with another pair: whoever is connected is cut off and dials again. libzmq
  // gives the port back in its own time, so binding is tried again at each call until it is done. True once it is.
  bool rebind(zmq::socket_t& socket, const schema::KeyPair& own);

  std::uint64_t refused() const { return refused_; }

 private:
  struct Knock {
    std::string address, mechanism, credentials;
  };
  void loop();
  void answer_one();
  std::optional<User> admit(const Knock& knock);
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
  Seldom lines_;
};

}  // namespace tg::daemon
