#include "daemon/control/control_sockets.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "daemon/mesh/socket_options.h"
#include "schema/limits.h"

namespace tg::daemon {

namespace {

// Threads for peers that are given by name; 63 bits of an affinity mask are left beside thread 0.
constexpr std::size_t kMostNamedPeerThreads = 16;

SocketOptions socket_options(int linger_ms, std::uint64_t io_threads) {
  return {.high_water_mark = schema::kControlHighWaterMark,
          .most_message_bytes = static_cast<std::int64_t>(schema::kMostControlBytes),
          .linger_ms = linger_ms,
          .most_reconnect_ms = 1000,
          .io_threads = io_threads};
}

std::size_t named_peers(const schema::NodeConfig& config) {
  return static_cast<std::size_t>(std::count_if(config.peers.begin(), config.peers.end(), [&](const auto& peer) {
    return peer.name != config.node && !is_address_literal(peer.host);
  }));
}

struct Message {
  std::vector<std::string> parts;  // none: no message waits
  std::string address;             // of the sender
};

Message receive(zmq::socket_t& socket) {
  Message message;
  zmq::message_t part;
  try {
    do {
      if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
      // A hostile message of a million parts costs time, not memory.
      if (message.parts.size() < 3) message.parts.push_back(part.to_string());
      if (!part.more()) message.address = part.gets("Peer-Address");
    } while (part.more());
  } catch (const zmq::error_t& error) {
    // EINVAL: the connection has no address (any longer).
    TG_CHECK(error.num() == EINTR || error.num() == EINVAL, error.what());
  }
  return message;
}

}  // namespace

struct ControlSockets::Impl {
  explicit Impl(int io_threads) : context(io_threads), wake_fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    TG_CHECK(wake_fd >= 0, std::strerror(errno));
  }
  ~Impl() { ::close(wake_fd); }

  zmq::context_t context;  // goes last: it waits until the sockets are gone
  const int wake_fd;
  zmq::socket_t router;
  Per<Seat, zmq::socket_t> dealers;  // the own one is empty
  std::vector<zmq::pollitem_t> poll_items;
};

ControlSockets::ControlSockets(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlSockets::~ControlSockets() = default;

Result<std::unique_ptr<ControlSockets>> ControlSockets::open(const schema::NodeConfig& config) {
  const std::size_t named_threads = std::min(named_peers(config), kMostNamedPeerThreads);
  auto impl = std::make_unique<Impl>(static_cast<int>(1 + named_threads));
  try {
    impl->router = zmq::socket_t(impl->context, zmq::socket_type::router);
    set_socket_options(impl->router, socket_options(schema::kControlLingerMs, 1));
    const auto port = static_cast<std::uint16_t>(config.self().port + 1);
    if (Status bound = bind_socket(impl->router, "control", config.listen, port); !bound) return bound.error();

    std::size_t named = 0;
    for (const schema::PeerAddress& peer : config.peers) {
      zmq::socket_t& dealer = impl->dealers.emplace_back();
      if (peer.name == config.node) continue;
      const bool literal = is_address_literal(peer.host);
      const std::uint64_t io_threads = literal ? 1 : std::uint64_t{2} << (named++ % named_threads);
      dealer = zmq::socket_t(impl->context, zmq::socket_type::dealer);
      set_socket_options(dealer, socket_options(0, io_threads));
      set_family(dealer, peer.host, config.listen);
      dealer.connect(peer.control_endpoint());
    }
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kIo, std::string("cannot set up the control port: ") + error.what()};
  }
  impl->poll_items.push_back({nullptr, impl->wake_fd, ZMQ_POLLIN, 0});
  impl->poll_items.push_back({impl->router.handle(), 0, ZMQ_POLLIN, 0});
  for (zmq::socket_t& dealer : impl->dealers) {
    if (dealer) impl->poll_items.push_back({dealer.handle(), 0, ZMQ_POLLIN, 0});
  }
  return std::unique_ptr<ControlSockets>(new ControlSockets(std::move(impl)));
}

void ControlSockets::wait(std::uint64_t timeout_ms) {
  try {
    zmq::poll(impl_->poll_items, std::chrono::milliseconds(timeout_ms));
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EINTR, error.what());
    return;
  }
  std::uint64_t count = 0;
  // Nothing to read is as good as something: either way nobody's wake-up is left over.
  [[maybe_unused]] const ssize_t ignored = ::read(impl_->wake_fd, &count, sizeof count);
}

void ControlSockets::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then the owner is woken already.
  [[maybe_unused]] const ssize_t ignored = ::write(impl_->wake_fd, &one, sizeof one);
}

std::optional<ClientMessage> ControlSockets::receive_client() {
  Message received = receive(impl_->router);
  if (received.parts.empty()) return std::nullopt;
  ClientMessage message;
  message.well_formed = received.parts.size() == 2;
  message.identity = std::move(received.parts[0]);
  if (message.well_formed) message.bytes = std::move(received.parts[1]);
  message.address = std::move(received.address);
  return message;
}

std::optional<std::string> ControlSockets::receive_peer(Seat peer) {
  zmq::socket_t& dealer = impl_->dealers[peer];
  if (!dealer) return std::nullopt;
  Message received = receive(dealer);
  if (received.parts.empty()) return std::nullopt;
  return received.parts.size() == 1 ? std::move(received.parts[0]) : std::string();
}

bool ControlSockets::send_client(const std::string& identity, const std::string& bytes) {
  try {
    const auto flags = zmq::send_flags::dontwait;
    if (!impl_->router.send(zmq::buffer(identity), flags | zmq::send_flags::sndmore)) return false;
    return impl_->router.send(zmq::buffer(bytes), flags).has_value();
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EHOSTUNREACH || error.num() == EINTR, error.what());
    return false;
  }
}

bool ControlSockets::send_peer(Seat peer, const std::string& bytes) {
  zmq::socket_t& dealer = impl_->dealers[peer];
  if (!dealer) return false;
  try {
    return dealer.send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EHOSTUNREACH || error.num() == EINTR, error.what());
    return false;
  }
}

}  // namespace tg::daemon
