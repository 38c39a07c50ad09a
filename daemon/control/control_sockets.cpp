#include "daemon/control/control_sockets.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "daemon/access/accepted_connections.h"
#include "daemon/access/connection.h"
#include "daemon/access/name_watch.h"
#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "daemon/access/zap_authenticator.h"
#include "engine/resources/descriptors.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

// The limit for a silent connection: tgctl sends a request each second or leaves, and peers send heartbeats.
constexpr std::chrono::milliseconds kMaxSilence{60'000};
constexpr std::size_t kMaxConnections = 512;
constexpr int kMaxReceived = 8;  // messages per connection before TCP holds it back
constexpr std::chrono::milliseconds kRedial{1000}, kRedialRotating{100};
constexpr const char* kReadsNothing = "it does not read its answers";
constexpr const char* kLocalName = "control.sock";
constexpr std::size_t kMaxLocalPath = 107;  // bytes; the kernel's limit for a Unix socket's name

SocketOptions socket_options(int linger_ms, std::size_t max_message_bytes) {
  return {.high_water_mark = schema::kControlHighWaterMark,
          .received_messages = kMaxReceived,
          .max_message_bytes = static_cast<std::int64_t>(max_message_bytes),
          .linger_ms = linger_ms,
          .max_reconnect_ms = 1000};
}

struct Message {
  std::vector<std::string> parts;  // empty if there is no message
  std::string address;             // the sender's
  std::string user;                // the identity from its key
  int descriptor = -1;
};

// A property of the message's connection; "" if it has none (any more).
std::string property(zmq::message_t& part, const char* name) {
  try {
    return part.gets(name);
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EINVAL, error.what());
    return "";
  }
}

Message receive(zmq::socket_t& socket) {
  Message message;
  zmq::message_t part;
  try {
    do {
      if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
      // A message of many parts costs time here, not memory; AcceptedConnections bounds what libzmq buffers.
      if (message.parts.size() < 3) message.parts.push_back(part.to_string());
      if (part.more()) continue;
      message.address = property(part, "Peer-Address");
      message.user = property(part, "User-Id");
      message.descriptor = AcceptedConnections::descriptor(part);
    } while (part.more());
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EINTR, error.what());
  }
  return message;
}

// The unread answers of all clients of a port.
struct UnreadTotal {
  std::atomic<std::size_t> bytes{0};
};

// The unread answers of one client; they count towards the port's total too, until libzmq releases them. With keys
// libzmq encrypts one answer per connection in advance, into memory of its own; that answer counts until the next one
// is encrypted, until the client's kernel has acknowledged it (settle), or until the connection is gone.
class UnreadAnswers {
 public:
  UnreadAnswers(std::shared_ptr<UnreadTotal> all, bool encrypts, int descriptor)
      : all_(std::move(all)), encrypts_(encrypts), descriptor_(descriptor) {}
  ~UnreadAnswers() { subtract(encrypted_); }
  UnreadAnswers(const UnreadAnswers&) = delete;

  std::size_t bytes() const { return bytes_; }
  std::size_t total_bytes() const { return all_->bytes; }
  void add(std::size_t bytes) {
    bytes_ += bytes;
    all_->bytes += bytes;
  }
  // libzmq has released an answer: on one of its threads after encryption, or on ours if it was not sent at all.
  void released(std::size_t bytes) {
    if (!encrypts_ || std::this_thread::get_id() == owner_) return subtract(bytes);
    const std::scoped_lock lock(mutex_);
    subtract(std::exchange(encrypted_, bytes));
    const std::optional<SendProgress> progress = AcceptedConnections::send_progress(descriptor_);
    arrived_at_ = progress ? progress->written + bytes : 0;
  }
  void settle() {
    const std::scoped_lock lock(mutex_);
    if (encrypted_ == 0) return;
    const std::optional<SendProgress> progress = AcceptedConnections::send_progress(descriptor_);
    if (!progress || progress->acknowledged >= arrived_at_) subtract(std::exchange(encrypted_, 0));
  }

 private:
  void subtract(std::size_t bytes) {
    bytes_ -= bytes;
    all_->bytes -= bytes;
  }
  const std::shared_ptr<UnreadTotal> all_;
  const bool encrypts_;
  const int descriptor_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;              // guards the two below
  std::size_t encrypted_ = 0;     // size of the answer that was encrypted last
  std::uint64_t arrived_at_ = 0;  // it has arrived once this many bytes of the connection are acknowledged
};

// The bytes of one answer, released on one of libzmq's threads.
struct QueuedAnswer {
  std::string bytes;
  std::shared_ptr<UnreadAnswers> unread;
};

void release_answer(void*, void* hint) {
  const std::unique_ptr<QueuedAnswer> answer(static_cast<QueuedAnswer*>(hint));
  answer->unread->released(answer->bytes.size());
}

struct PeerLink {
  Connection link;
  std::size_t cluster = 0;  // the next cluster key to try
  std::string host;         // its address, in digits
  std::string line;         // the host:port of its peer line that was dialled
  std::string problem;
  bool redial = false, refused = false;
  std::chrono::steady_clock::time_point dialled{};
};

struct TcpClient {
  int descriptor = -1;
  std::string identity;  // from its key
  std::shared_ptr<UnreadAnswers> unread;
};

std::string place_of(const schema::PeerAddress& peer) {
  return schema::host_and_port(peer.host, static_cast<std::uint16_t>(peer.port + 1));
}

// The first letter of the client identities that the owner uses.
constexpr char kTcp = 't', kLocal = 'l';

}  // namespace

struct ControlSockets::Impl {
  Impl(const schema::NodeConfig& node, Keyring& ring, Log& node_log)
      : config(node),
        keyring(ring),
        log(node_log),
        names(node.nodes.hosts()),
        authenticator(context, "control", keyring, Networks(node.nodes, node.control_allow), log),
        wake_fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        links(node.nodes.kMaxNodes) {
    TG_CHECK(wake_fd >= 0, std::strerror(errno));
  }
  ~Impl() {
    connections.reset();
    ::close(wake_fd);
  }

  Status bind();
  Status bind_local();
  void dial(Seat peer);
  void watch(Seat peer);
  void watch_clients();
  void rebind_port();
  Message receive_from(char kind) { return kind == kTcp ? receive(router) : local ? receive(local) : Message{}; }
  std::optional<User> user_of(const Message& message);
  bool send(zmq::socket_t& socket, const std::string& id, const std::shared_ptr<UnreadAnswers>& client_unread,
            const std::string& bytes);
  void settle();
  void cut(const std::string& id, const std::string& why);
  void make_room(std::size_t bytes);

  const schema::NodeConfig config;
  Keyring& keyring;
  Log& log;
  NameWatch names;
  zmq::context_t context;  // destroyed last, since it waits for its sockets to close
  ZapAuthenticator authenticator;
  const int wake_fd;
  zmq::socket_t router, local;
  char next = kTcp;  // the socket that is read first
  std::unique_ptr<AcceptedConnections> connections;
  schema::KeyPair bound;                     // the key pair of the bound ROUTER
  std::map<std::string, TcpClient> clients;  // open connections, by routing id
  std::deque<std::string> cut_clients;       // their routing ids; their queued requests are dropped
  const std::shared_ptr<UnreadTotal> unread = std::make_shared<UnreadTotal>(),
                                     unread_locally = std::make_shared<UnreadTotal>();
  Per<Seat, PeerLink> links;  // empty at this node's seat
  std::chrono::steady_clock::time_point ticked{};
};

Status ControlSockets::Impl::bind() {
  router = zmq::socket_t(context, zmq::socket_type::router);
  SocketOptions options = socket_options(schema::kControlLingerMs, schema::kMaxRequestBytes);
  options.ipv6 = schema::is_ipv6(config.listen);
  set_socket_options(router, options);
  if (keyring.has_keys()) bound = keyring.control_keys();
  authenticator.secure(router, bound);
  connections = std::make_unique<AcceptedConnections>(
      context, router,
      ConnectionLimits{
          std::min(kMaxConnections, schema::connections_of(engine::allowed_descriptors(), config.peers.size())),
          kMaxSilence, schema::kMaxRequestBytes},
      "control", log);
  return bind_socket(router, "control", config.listen, config.control_port());
}

// Binds the local socket. Only this user and root may open it, so it needs no keys.
Status ControlSockets::Impl::bind_local() {
  const std::string path = std::filesystem::absolute(config.state_dir) / kLocalName;
  if (path.size() > kMaxLocalPath) {
    log.warning("no-local-socket", {{"path", path}, {"why", "the path is too long for a Unix socket"}});
    return {};
  }
  local = zmq::socket_t(context, zmq::socket_type::router);
  set_socket_options(local, socket_options(schema::kControlLingerMs, schema::kMaxRequestBytes));
  const mode_t before = ::umask(0177);
  try {
    local.bind("ipc://" + path);
    ::umask(before);
  } catch (const zmq::error_t& error) {
    ::umask(before);
    return Error{ErrorKind::kIo, "cannot bind the local control socket " + path + ": " + error.what()};
  }
  return {};
}

void ControlSockets::Impl::dial(Seat peer) {
  PeerLink& link = links[peer];
  const schema::PeerAddress address = config.nodes.line(peer);
  link.dialled = std::chrono::steady_clock::now();
  if (link.problem.empty()) link.problem = no_answer_text(place_of(address));
  link.redial = false;
  std::optional<Credentials> credentials;
  if (keyring.has_keys()) {
    const Keyring::ConnectionKeys ends = keyring.to_control(link.cluster);
    credentials = Credentials{ends.own, ends.port};
    ++link.cluster;
  }
  SocketOptions options = socket_options(0, schema::kMaxControlBytes);
  options.ipv6 = link.host.find(':') != std::string::npos;
  link.link = daemon::dial(context, options, credentials,
                           "tcp://" + host_and_port(link.host, static_cast<std::uint16_t>(address.port + 1)));
}

void ControlSockets::Impl::watch(Seat peer) {
  PeerLink& link = links[peer];
  const schema::PeerAddress address = config.nodes.line(peer);
  const std::string place = config.nodes.is_listed(peer) ? place_of(address) : "";
  if (place != std::exchange(link.line, place)) {
    link = {};
    link.line = place;
  }
  if (place.empty()) return;
  while (link.link.dealer) {
    const std::optional<ConnectionEvent> event = next_event(link.link.monitor);
    if (!event) break;
    if (*event == ConnectionEvent::kConnected) {
      link.problem.clear();
      link.refused = false;
    }
    if (*event == ConnectionEvent::kDisconnected && link.problem.empty())  // a refusal has set a problem already
      link.problem = no_answer_text(place);
    if (*event == ConnectionEvent::kConnected || *event == ConnectionEvent::kDisconnected) continue;
    link.redial = true;
    link.refused = *event != ConnectionEvent::kKeyRefused;  // in that case the names differ
    link.problem = explain_failure(*event, {.place = place,
                                            .peer = address.name,
                                            .own = config.node,
                                            .has_keys = keyring.has_keys(),
                                            .key_of_peer = false});
  }
  // During a rotation the peer may have the other key, which is tried soon.
  const auto pause = keyring.has_keys() && keyring.cluster_count() > 1 ? kRedialRotating : kRedial;
  const auto now = std::chrono::steady_clock::now();
  if (link.link.dealer && link.problem.empty()) link.dialled = now;  // connected
  const bool again = link.redial && now - link.dialled >= pause;
  if (link.link.dealer && !again && now - link.dialled < std::chrono::milliseconds(kNextAddressMs)) return;
  const bool next_key = again && keyring.has_keys() && link.cluster % keyring.cluster_count() != 0;
  std::string host = next_key ? link.host : names.next_address(address.host, link.host);
  if (host == link.host && !again) return;
  link.host = std::move(host);
  dial(peer);
}

void ControlSockets::Impl::watch_clients() {
  connections->process_events();
  connections->tick(std::chrono::steady_clock::now());
  std::vector<std::string> gone;
  for (const auto& [id, client] : clients)
    if (!keyring.find_user(client.identity)) gone.push_back(id);
  for (const std::string& id : gone) cut(id, Keyring::kKeyRevoked);
  std::erase_if(clients, [&](const auto& client) { return !connections->is_open(client.second.descriptor); });
  settle();
}

// Subtracts the answers that the clients have acknowledged.
void ControlSockets::Impl::settle() {
  for (const auto& [id, client] : clients) client.unread->settle();
}

// The sender of a message; no value if it is not to be answered: its connection was cut, or its key was revoked.
std::optional<User> ControlSockets::Impl::user_of(const Message& message) {
  const std::string& id = message.parts[0];
  if (std::find(cut_clients.begin(), cut_clients.end(), id) != cut_clients.end()) return std::nullopt;
  if (clients.size() > 2 * kMaxConnections || !connections->is_open(message.descriptor)) watch_clients();
  TcpClient& client = clients[id];
  if (!client.unread) client.unread = std::make_shared<UnreadAnswers>(unread, keyring.has_keys(), message.descriptor);
  client.descriptor = message.descriptor;
  client.identity = message.user;
  const std::optional<User> user = keyring.find_user(message.user);
  if (!user) cut(id, message.user.empty() ? "not authenticated" : Keyring::kKeyRevoked);
  return user;
}

// Applies a changed key, during a run too: heartbeats resume a moment later, and operators already have the new keys.
void ControlSockets::Impl::rebind_port() {
  if (!keyring.has_keys()) return;
  const schema::KeyPair own = keyring.control_keys();
  if (own.public_key != bound.public_key && authenticator.rebind(router, own)) bound = own;
}

// Enforces the port's limit: above it nothing is sent until earlier answers are read or their connections are gone. The
// last share of the limit is reserved for short answers to peers and clients that have read all answers so far.
bool ControlSockets::Impl::send(zmq::socket_t& socket, const std::string& id,
                                const std::shared_ptr<UnreadAnswers>& client_unread, const std::string& bytes) {
  const bool short_one = client_unread->bytes() == 0 && bytes.size() <= schema::kShortAnswerBytes;
  const std::size_t most = schema::kMaxUnreadBytesPerPort - (short_one ? 0 : schema::kUnreadBytesForReaders);
  if (client_unread->total_bytes() + bytes.size() > most) return false;
  auto answer = std::make_unique<QueuedAnswer>(QueuedAnswer{bytes, client_unread});
  client_unread->add(bytes.size());
  QueuedAnswer* const hint = answer.release();
  zmq::message_t message(hint->bytes.data(), hint->bytes.size(), release_answer, hint);
  try {
    const auto flags = zmq::send_flags::dontwait;
    if (!socket.send(zmq::buffer(id), flags | zmq::send_flags::sndmore)) return false;
    return socket.send(message, flags).has_value();
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EHOSTUNREACH || error.num() == EINTR, error.what());
    return false;
  }
}

void ControlSockets::Impl::cut(const std::string& id, const std::string& why) {
  const auto client = clients.find(id);
  if (client == clients.end()) return;
  connections->close(client->second.descriptor, why);
  clients.erase(client);
  cut_clients.push_back(id);
  if (cut_clients.size() > 2 * kMaxConnections) cut_clients.pop_front();
}

// Cuts the clients with the most unread bytes until the others leave room for that many bytes more. The room becomes
// free when libzmq has noticed the cuts.
void ControlSockets::Impl::make_room(std::size_t bytes) {
  constexpr std::size_t kMost = schema::kMaxUnreadBytesPerPort - schema::kUnreadBytesForReaders;
  if (unread->bytes + bytes <= kMost) return;
  settle();
  std::size_t of_open = bytes;
  for (const auto& [id, client] : clients) of_open += client.unread->bytes();
  while (of_open > kMost) {
    const auto slowest = std::max_element(clients.begin(), clients.end(), [](const auto& a, const auto& b) {
      return a.second.unread->bytes() < b.second.unread->bytes();
    });
    if (slowest == clients.end()) return;
    of_open -= std::min(of_open, slowest->second.unread->bytes());
    cut(std::string(slowest->first), kReadsNothing);
  }
}

ControlSockets::ControlSockets(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlSockets::~ControlSockets() = default;

Result<std::unique_ptr<ControlSockets>> ControlSockets::open(const schema::NodeConfig& config, Keyring& keyring,
                                                             Log& log) {
  auto impl = std::make_unique<Impl>(config, keyring, log);
  try {
    impl->authenticator.start();
    if (Status bound = impl->bind(); !bound) return bound.error();
    if (Status bound = impl->bind_local(); !bound) return bound.error();
    for (const Seat peer : config.nodes.places())
      if (peer != config.seat()) impl->watch(peer);
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kIo, std::string("cannot set up the control port: ") + error.what()};
  }
  return std::unique_ptr<ControlSockets>(new ControlSockets(std::move(impl)));
}

void ControlSockets::wait(std::uint64_t timeout_ms) {
  std::vector<zmq::pollitem_t> items{{nullptr, impl_->wake_fd, ZMQ_POLLIN, 0},
                                     {impl_->router.handle(), 0, ZMQ_POLLIN, 0}};
  if (impl_->local) items.push_back({impl_->local.handle(), 0, ZMQ_POLLIN, 0});
  for (PeerLink& link : impl_->links)
    if (link.link.dealer) items.push_back({link.link.dealer.handle(), 0, ZMQ_POLLIN, 0});
  try {
    zmq::poll(items, std::chrono::milliseconds(timeout_ms));
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EINTR, error.what());
    return;
  }
  std::uint64_t count = 0;
  // Failure means that there is no wake-up to clear.
  [[maybe_unused]] const ssize_t ignored = ::read(impl_->wake_fd, &count, sizeof count);
}

void ControlSockets::wake() {
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then the owner is awake already.
  [[maybe_unused]] const ssize_t ignored = ::write(impl_->wake_fd, &one, sizeof one);
}

void ControlSockets::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (now - impl_->ticked < kConnectionTick) return;
  impl_->ticked = now;
  try {
    impl_->watch_clients();
    for (const Seat peer : impl_->config.nodes.all())
      if (peer != impl_->config.seat()) impl_->watch(peer);
    impl_->rebind_port();
  } catch (const zmq::error_t& error) {
    impl_->log.warning("control-sockets", {{"error", error.what()}});
  }
}

std::optional<ClientMessage> ControlSockets::receive_client() {
  for (int taken = 0; taken < schema::kMaxMessagesPerTurn; ++taken) {
    char kind = impl_->next;
    Message received = impl_->receive_from(kind);
    impl_->next = kind == kTcp ? kLocal : kTcp;  // alternates, so that neither socket starves
    if (received.parts.empty()) {
      kind = impl_->next;
      received = impl_->receive_from(kind);
    }
    if (received.parts.empty()) return std::nullopt;
    std::optional<User> user = User{User::Kind::kMember, "", schema::Rights::kFull};
    if (kind == kTcp) user = impl_->user_of(received);
    if (!user) continue;
    ClientMessage message;
    message.well_formed = received.parts.size() == 2;
    message.identity = kind + received.parts[0];
    if (message.well_formed) message.bytes = std::move(received.parts[1]);
    message.address = kind == kLocal ? "the local socket" : std::move(received.address);
    message.user = *std::move(user);
    if (kind == kTcp && message.well_formed) impl_->connections->on_message(received.descriptor);
    return message;
  }
  return std::nullopt;
}

std::optional<std::string> ControlSockets::receive_peer(Seat peer) {
  zmq::socket_t& dealer = impl_->links[peer].link.dealer;
  if (!dealer) return std::nullopt;
  Message received = receive(dealer);
  if (received.parts.empty()) return std::nullopt;
  return received.parts.size() == 1 ? std::move(received.parts[0]) : std::string();
}

bool ControlSockets::send_client(const std::string& identity, const std::string& bytes) {
  const std::string id = identity.substr(1);
  if (identity[0] == kLocal) {
    return impl_->send(impl_->local, id, std::make_shared<UnreadAnswers>(impl_->unread_locally, false, -1), bytes);
  }
  const auto client = impl_->clients.find(id);
  if (client == impl_->clients.end()) return false;
  const std::shared_ptr<UnreadAnswers> unread = client->second.unread;
  if (unread->bytes() + bytes.size() > schema::kMaxUnreadBytes) impl_->settle();
  if (unread->bytes() > 0 && unread->bytes() + bytes.size() > schema::kMaxUnreadBytes) {
    impl_->cut(id, kReadsNothing);
    return false;
  }
  impl_->make_room(bytes.size());
  return impl_->send(impl_->router, id, unread, bytes);
}

bool ControlSockets::send_peer(Seat peer, const std::string& bytes) {
  zmq::socket_t& dealer = impl_->links[peer].link.dealer;
  if (!dealer) return false;
  try {
    return dealer.send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EHOSTUNREACH || error.num() == EINTR, error.what());
    return false;
  }
}

std::size_t ControlSockets::unread_bytes() const { return impl_->unread->bytes; }

std::string ControlSockets::problem(Seat peer) const { return impl_->links[peer].problem; }

std::string ControlSockets::refusal(Seat peer) const {
  return impl_->links[peer].refused ? impl_->links[peer].problem : "";
}

}  // namespace tg::daemon
