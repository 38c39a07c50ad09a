#include "daemon/access/connection.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tg::daemon {
namespace {

constexpr int kConnectionEvents = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;

void set_key(zmq::socket_t& socket, int option, const schema::Key& key) {
  if (zmq_setsockopt(socket.handle(), option, key.data(), key.size()) != 0) throw zmq::error_t();
}

}  // namespace

Connection& Connection::operator=(Connection&& other) noexcept {
  stop_events(dealer);
  dealer = std::move(other.dealer);
  monitor = std::move(other.monitor);
  return *this;
}

void Connection::stop_events(zmq::socket_t& dealer) noexcept {
  if (dealer) zmq_socket_monitor(dealer.handle(), nullptr, 0);
}

Connection dial(zmq::context_t& context, const SocketOptions& options, const std::optional<Credentials>& credentials,
                const std::string& endpoint) {
  static std::atomic<std::uint64_t> count{0};
  Connection made;
  made.dealer = zmq::socket_t(context, zmq::socket_type::dealer);
  made.monitor = zmq::socket_t(context, zmq::socket_type::pair);
  set_socket_options(made.dealer, options);
  if (credentials) {
    set_key(made.dealer, ZMQ_CURVE_SERVERKEY, credentials->server);
    set_key(made.dealer, ZMQ_CURVE_PUBLICKEY, credentials->own.public_key);
    set_key(made.dealer, ZMQ_CURVE_SECRETKEY, credentials->own.secret);
  }
  const std::string events = "inproc://dial-" + std::to_string(++count);
  if (zmq_socket_monitor(made.dealer.handle(), events.c_str(), kConnectionEvents) != 0) throw zmq::error_t();
  made.monitor.set(zmq::sockopt::linger, 0);
  made.monitor.connect(events);
  made.dealer.connect(endpoint);
  return made;
}

std::optional<ConnectionEvent> next_event(zmq::socket_t& monitor) {
  zmq::message_t event, address;
  if (!monitor.recv(event, zmq::recv_flags::dontwait)) return std::nullopt;
  if (!monitor.recv(address, zmq::recv_flags::dontwait)) return std::nullopt;
  std::uint16_t what = 0;
  std::int32_t value = 0;
  if (event.size() == sizeof what + sizeof value) {
    std::memcpy(&what, event.data(), sizeof what);
    std::memcpy(&value, event.data<char>() + sizeof what, sizeof value);
  }
  switch (what) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return ConnectionEvent::kConnected;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return ConnectionEvent::kKeyRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? ConnectionEvent::kMechanismMismatch
                                                                 : ConnectionEvent::kHandshakeFailed;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:  // with errno: EAGAIN, unless the other end closed the connection
      return value == EAGAIN ? ConnectionEvent::kSilent : ConnectionEvent::kHandshakeFailed;
    default:
      return ConnectionEvent::kDisconnected;  // or MONITOR_STOPPED
  }
}

std::string explain_failure(ConnectionEvent event, const ConnectFailure& failure) {
  const std::string what = "what answers at " + failure.place + " for " + failure.peer,
                    mend = "correct the peer line of " + failure.peer;
  if (event == ConnectionEvent::kSilent)
    return what +
           " accepts connections and sends nothing: it is stopped or hangs (on that machine, ps -C tgd -o "
           "pid,stat,args shows T if it is stopped: kill -CONT PID; otherwise look at its log and restart it), or it "
           "is not a tgd; then " +
           mend;
  // A port with the expected key knows the keys of all names in its own peer lines.
  if (event == ConnectionEvent::kKeyRefused)
    return failure.peer + " does not let " + failure.own + " in: no peer line there " +
           (failure.has_keys ? "names it" : "has the address that it connects from") +
           "; give every node the same peer lines";
  if (!failure.has_keys)
    return event == ConnectionEvent::kMechanismMismatch
               ? what + " requires keys; give " + failure.own + " the cluster key file of " + failure.peer + ", or " +
                     mend
               : what + " is not a tgd; " + mend + ", or end that program";
  if (event == ConnectionEvent::kMechanismMismatch)
    return what + " has no keys; give " + failure.peer + " the cluster key file of " + failure.own + ", or " + mend +
           " if that is another program";
  return what + " has another cluster key than " + failure.own +
         (failure.key_of_peer ? ", or is not called " + failure.peer : "") + "; if it is " + failure.peer +
         ", give both the same cluster key file, and if it is a node of another mesh, " + mend;
}

}  // namespace tg::daemon
