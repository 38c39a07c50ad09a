#include "daemon/access/dial.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tg::daemon {
namespace {

constexpr int kDialEvents = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;

void set_key(zmq::socket_t& socket, int option, const schema::Key& key) {
  if (zmq_setsockopt(socket.handle(), option, key.data(), key.size()) != 0) throw zmq::error_t();
}

}  // namespace

Dial& Dial::operator=(Dial&& other) noexcept {
  end_events(dealer);
  dealer = std::move(other.dealer);
  monitor = std::move(other.monitor);
  return *this;
}

void Dial::end_events(zmq::socket_t& dealer) noexcept {
  if (dealer) zmq_socket_monitor(dealer.handle(), nullptr, 0);
}

Dial dial(zmq::context_t& context, const SocketOptions& options, const std::optional<Introduction>& introduction,
          const std::string& endpoint) {
  static std::atomic<std::uint64_t> count{0};
  Dial made;
  made.dealer = zmq::socket_t(context, zmq::socket_type::dealer);
  made.monitor = zmq::socket_t(context, zmq::socket_type::pair);
  set_socket_options(made.dealer, options);
  if (introduction) {
    set_key(made.dealer, ZMQ_CURVE_SERVERKEY, introduction->server);
    set_key(made.dealer, ZMQ_CURVE_PUBLICKEY, introduction->own.public_key);
    set_key(made.dealer, ZMQ_CURVE_SECRETKEY, introduction->own.secret);
  }
  const std::string events = "inproc://dial-" + std::to_string(++count);
  if (zmq_socket_monitor(made.dealer.handle(), events.c_str(), kDialEvents) != 0) throw zmq::error_t();
  made.monitor.set(zmq::sockopt::linger, 0);
  made.monitor.connect(events);
  made.dealer.connect(endpoint);
  return made;
}

std::optional<DialEvent> next_event(zmq::socket_t& monitor) {
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
      return DialEvent::kConnected;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return DialEvent::kKeyRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? DialEvent::kOtherMechanism
                                                                 : DialEvent::kHandshakeFailed;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:  // with errno: EAGAIN, unless the other end closed the connection
      return value == EAGAIN ? DialEvent::kSilent : DialEvent::kHandshakeFailed;
    default:
      return DialEvent::kDisconnected;  // or MONITOR_STOPPED
  }
}

std::string why_closed(DialEvent event, const ClosedDoor& door) {
  const std::string what = "what answers at " + door.place + " for " + door.peer,
                    mend = "correct the peer line of " + door.peer;
  if (event == DialEvent::kSilent)
    return what +
           " takes connections and says nothing: it is stopped or hangs (on that machine, ps -C tgd -o "
           "pid,stat,args shows T where it is stopped: kill -CONT PID; else look at its log and restart it), or it "
           "is no tgd; then " +
           mend;
  // Whoever has the key that we expect knows all nodes' keys: of the names in its own peer lines.
  if (event == DialEvent::kKeyRefused)
    return door.peer + " does not let " + door.own + " in: no peer line there " +
           (door.has_keys ? "names it" : "has the address that it calls from") +
           "; give every node the same peer lines";
  if (!door.has_keys)
    return event == DialEvent::kOtherMechanism
               ? what + " requires keys; give " + door.own + " the cluster key file of " + door.peer + ", or " + mend
               : what + " is not a tgd; " + mend + ", or end that program";
  if (event == DialEvent::kOtherMechanism)
    return what + " has no keys; give " + door.peer + " the cluster key file of " + door.own + ", or " + mend +
           " if that is another program";
  return what + " has another cluster key than " + door.own +
         (door.key_of_peer ? ", or is not called " + door.peer : "") + "; if it is " + door.peer +
         ", give both the same cluster key file, and if it is a node of another mesh, " + mend;
}

}  // namespace tg::daemon
