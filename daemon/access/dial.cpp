#include "daemon/access/dial.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace tg::daemon {
namespace {

constexpr int kEvents = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
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
    set_key(made.dealer, ZMQ_CURVE_PUBLICKEY, introduction->own.open);
    set_key(made.dealer, ZMQ_CURVE_SECRETKEY, introduction->own.secret);
  }
  const std::string events = "inproc://dial-" + std::to_string(++count);
  if (zmq_socket_monitor(made.dealer.handle(), events.c_str(), kEvents) != 0) throw zmq::error_t();
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
  if (event.size() >= sizeof what) std::memcpy(&what, event.data(), sizeof what);
  switch (what) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return DialEvent::kConnected;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return DialEvent::kKeyRefused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return DialEvent::kHandshakeFailed;
    default:
      return DialEvent::kDisconnected;  // or MONITOR_STOPPED
  }
}

}  // namespace tg::daemon
