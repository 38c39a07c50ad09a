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

#include "daemon/access/connections.h"
#include "daemon/access/dial.h"
#include "daemon/access/doorkeeper.h"
#include "daemon/access/io_threads.h"
#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "engine/resources/descriptors.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

// Limit for a connection that says nothing: tgctl asks something each second or leaves, and peers beat.
constexpr std::chrono::milliseconds kMaxSilence{60'000};
constexpr std::size_t kMaxConnections = 512;
constexpr int kMaxReceived = 8;  // messages of one connection, before TCP holds it back
constexpr std::chrono::milliseconds kRedial{1000}, kRedialRotating{100};
constexpr const char* kReadsNothing = "it does not read its answers";
constexpr const char* kLocalName = "control.sock";
constexpr std::size_t kMaxLocalPath = 107;  // bytes of a Unix socket's name

SocketOptions socket_options(int linger_ms, std::uint64_t io_threads, std::size_t most_message_bytes) {
  return {.high_water_mark = schema::kControlHighWaterMark,
          .received_messages = kMaxReceived,
          .most_message_bytes = static_cast<std::int64_t>(most_message_bytes),
          .linger_ms = linger_ms,
          .most_reconnect_ms = 1000,
          .io_threads = io_threads};
}

struct Message {
  std::vector<std::string> parts;  // empty if no message waits
  std::string address;             // the sender's
  std::string user;                // the identity of its key
  int descriptor = -1;
};

// "" if the connection has no such property (any longer).
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
      // A message of many parts costs time here, not memory; what libzmq holds until its end, Connections watches.
      if (message.parts.size() < 3) message.parts.push_back(part.to_string());
      if (part.more()) continue;
      message.address = property(part, "Peer-Address");
      message.user = property(part, "User-Id");
      message.descriptor = Connections::descriptor(part);
    } while (part.more());
  } catch (const zmq::error_t& error) {
    TG_CHECK(error.num() == EINTR, error.what());
  }
  return message;
}

// Answers that wait for all clients of a port.
struct UntakenInAll {
  std::atomic<std::size_t> bytes{0};
};

// Answers that wait for one client; they count for all as well, until the connection has them. With keys libzmq
// encrypts one answer of a connection ahead, into memory of its own: that one counts until the next is encrypted, until
// it has arrived at the client (settle), or the connection is gone.
class Untaken {
 public:
  Untaken(std::shared_ptr<UntakenInAll> all, bool encrypts, int descriptor)
      : all_(std::move(all)), encrypts_(encrypts), descriptor_(descriptor) {}
  ~Untaken() { subtract(encrypted_); }
  Untaken(const Untaken&) = delete;

  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_in_all() const { return all_->bytes; }
  void add(std::size_t bytes) {
    bytes_ += bytes;
    all_->bytes += bytes;
  }
  // libzmq has let go of an answer: on one of its threads when it is encrypted, on ours where it is not sent at all.
  void released(std::size_t bytes) {
    if (!encrypts_ || std::this_thread::get_id() == owner_) return subtract(bytes);
    const std::scoped_lock lock(mutex_);
    subtract(std::exchange(encrypted_, bytes));
    const std::optional<SentBytes> sent = Connections::sent(descriptor_);
    arrived_at_ = sent ? sent->given + bytes : 0;
  }
  void settle() {
    const std::scoped_lock lock(mutex_);
    if (encrypted_ == 0) return;
    const std::optional<SentBytes> sent = Connections::sent(descriptor_);
    if (!sent || sent->arrived >= arrived_at_) subtract(std::exchange(encrypted_, 0));
  }

 private:
  void subtract(std::size_t bytes) {
    bytes_ -= bytes;
    all_->bytes -= bytes;
  }
  const std::shared_ptr<UntakenInAll> all_;
  const bool encrypts_;
  const int descriptor_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;              // of both:
  std::size_t encrypted_ = 0;     // the size of the answer that was encrypted last
  std::uint64_t arrived_at_ = 0;  // it has arrived when so many bytes of the connection have
};

// One answer's bytes. Released on one of libzmq's threads.
struct Untold {
  std::string bytes;
  std::shared_ptr<Untaken> untaken;
};

void release_answer(void*, void* hint) {
  const std::unique_ptr<Untold> answer(static_cast<Untold*>(hint));
  answer->untaken->released(answer->bytes.size());
}

struct PeerLink {
  Dial link;
  std::size_t cluster = 0;  // which cluster key is next
  std::uint64_t io_threads = 0;
  std::string problem;
  bool redial = false, refused = false;
  std::chrono::steady_clock::time_point dialled{};
};

struct TcpClient {
  int descriptor = -1;
  std::string identity;  // of its key
  std::shared_ptr<Untaken> untaken;
};

std::string place_of(const schema::PeerAddress& peer) {
  return schema::host_and_port(peer.host, static_cast<std::uint16_t>(peer.port + 1));
}

std::vector<std::string> allowed_hosts(const schema::NodeConfig& config) {
  std::vector<std::string> hosts = config.hosts();
  hosts.insert(hosts.end(), config.control_allow.begin(), config.control_allow.end());
  return hosts;
}

// First letter of the identities that the owner sees.
constexpr char kTcp = 't', kLocal = 'l';

}  // namespace

struct ControlSockets::Impl {
  Impl(int io_threads, const schema::NodeConfig& node, Keyring& ring, Log& node_log)
      : config(node),
        keyring(ring),
        log(node_log),
        context(io_threads),
        doorkeeper(context, "control", keyring, Networks(allowed_hosts(node)), log),
        wake_fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        links(node.peers.size()) {
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
  void bind_keys_of_now();
  Message receive_from(char kind) { return kind == kTcp ? receive(router) : local ? receive(local) : Message{}; }
  std::optional<User> user_of(const Message& message);
  bool send(zmq::socket_t& socket, const std::string& id, const std::shared_ptr<Untaken>& untaken,
            const std::string& bytes);
  void settle();
  void cut(const std::string& id, const std::string& why);
  void make_room(std::size_t bytes);

  const schema::NodeConfig config;
  Keyring& keyring;
  Log& log;
  zmq::context_t context;  // destroyed last: it waits until the sockets are gone
  Doorkeeper doorkeeper;
  const int wake_fd;
  zmq::socket_t router, local;
  char next = kTcp;  // which of the two is asked first
  std::unique_ptr<Connections> connections;
  schema::KeyPair bound;                     // the pair that the ROUTER is bound with
  std::map<std::string, TcpClient> clients;  // open connections, by routing id
  std::deque<std::string> ended;             // routing ids that were cut: what they still have queued is dropped
  const std::shared_ptr<UntakenInAll> untaken = std::make_shared<UntakenInAll>(),
                                      untaken_locally = std::make_shared<UntakenInAll>();
  Per<Seat, PeerLink> links;  // our own is empty
  std::chrono::steady_clock::time_point looked{};
};

Status ControlSockets::Impl::bind() {
  router = zmq::socket_t(context, zmq::socket_type::router);
  SocketOptions options = socket_options(schema::kControlLingerMs, 1, schema::kMaxRequestBytes);
  options.ipv6 = schema::is_ipv6(config.listen);
  set_socket_options(router, options);
  if (keyring.has_keys()) bound = keyring.control();
  doorkeeper.guard(router, bound);
  connections = std::make_unique<Connections>(
      context, router,
      ConnectionLimits{
          std::min(kMaxConnections, schema::connections_of(engine::allowed_descriptors(), config.peers.size())),
          kMaxSilence, schema::kMaxRequestBytes},
      "control", log);
  return bind_socket(router, "control", config.listen, config.control_port());
}

// Only this user and root may open it, so it needs no keys.
Status ControlSockets::Impl::bind_local() {
  const std::string path = std::filesystem::absolute(config.state_dir) / kLocalName;
  if (path.size() > kMaxLocalPath) {
    log.warning("no-local-socket", {{"path", path}, {"why", "longer than a socket's name may be"}});
    return {};
  }
  local = zmq::socket_t(context, zmq::socket_type::router);
  set_socket_options(local, socket_options(schema::kControlLingerMs, 1, schema::kMaxRequestBytes));
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
  const schema::PeerAddress& address = config.peers[peer];
  link.dialled = std::chrono::steady_clock::now();
  if (link.problem.empty()) link.problem = no_answer(place_of(address));
  link.redial = false;
  std::optional<Introduction> introduction;
  if (keyring.has_keys()) {
    const Keyring::Ends ends = keyring.to_control(link.cluster);
    introduction = Introduction{ends.own, ends.port};
    ++link.cluster;
  }
  SocketOptions options = socket_options(0, link.io_threads, schema::kMaxControlBytes);
  options.ipv6 = takes_ipv6(address.host, config.listen);
  link.link = daemon::dial(context, options, introduction, address.control_endpoint());
}

void ControlSockets::Impl::watch(Seat peer) {
  PeerLink& link = links[peer];
  while (const std::optional<DialEvent> event = next_event(link.link.monitor)) {
    if (*event == DialEvent::kConnected) {
      link.problem.clear();
      link.refused = false;
    }
    if (*event == DialEvent::kDisconnected && link.problem.empty())  // else it was refused, and said so
      link.problem = no_answer(place_of(config.peers[peer]));
    if (*event == DialEvent::kConnected || *event == DialEvent::kDisconnected) continue;
    link.redial = true;
    link.refused = *event != DialEvent::kKeyRefused;  // then it is the names that differ
    link.problem = why_closed(*event, {.place = place_of(config.peers[peer]),
                                       .peer = config.peers[peer].name,
                                       .own = config.node,
                                       .has_keys = keyring.has_keys(),
                                       .key_of_peer = false});
  }
  // During a rotation the peer has the other key, which is tried before its silence is held against it.
  const auto pause = keyring.has_keys() && keyring.clusters() > 1 ? kRedialRotating : kRedial;
  if (link.redial && std::chrono::steady_clock::now() - link.dialled >= pause) dial(peer);
}

void ControlSockets::Impl::watch_clients() {
  connections->take_events();
  connections->tick(std::chrono::steady_clock::now());
  std::vector<std::string> gone;
  for (const auto& [id, client] : clients)
    if (!keyring.user(client.identity)) gone.push_back(id);
  for (const std::string& id : gone) cut(id, Keyring::kKeyGone);
  std::erase_if(clients, [&](const auto& client) { return !connections->open(client.second.descriptor); });
  settle();
}

// What a connection's client has taken is no more owed.
void ControlSockets::Impl::settle() {
  for (const auto& [id, client] : clients) client.untaken->settle();
}

// Nothing if the message is not to be answered: it comes from a connection that was cut, or its key is gone.
std::optional<User> ControlSockets::Impl::user_of(const Message& message) {
  const std::string& id = message.parts[0];
  if (std::find(ended.begin(), ended.end(), id) != ended.end()) return std::nullopt;
  if (clients.size() > 2 * kMaxConnections || !connections->open(message.descriptor)) watch_clients();
  TcpClient& client = clients[id];
  if (!client.untaken) client.untaken = std::make_shared<Untaken>(untaken, keyring.has_keys(), message.descriptor);
  client.descriptor = message.descriptor;
  client.identity = message.user;
  const std::optional<User> user = keyring.user(message.user);
  if (!user) cut(id, message.user.empty() ? "nobody let it in" : Keyring::kKeyGone);
  return user;
}

// Also during a run: beats continue a moment later, and operators already have the new keys.
void ControlSockets::Impl::bind_keys_of_now() {
  if (!keyring.has_keys()) return;
  const schema::KeyPair own = keyring.control();
  if (own.public_key != bound.public_key && doorkeeper.rebind(router, own)) bound = own;
}

// Holds the port's bound: above it nothing is sent until what was sent before has been taken, or its connection is
// gone. The last of it is for short answers to who has taken all before: beats, and clients that read.
bool ControlSockets::Impl::send(zmq::socket_t& socket, const std::string& id, const std::shared_ptr<Untaken>& owed,
                                const std::string& bytes) {
  const bool short_one = owed->bytes() == 0 && bytes.size() <= schema::kShortAnswerBytes;
  const std::size_t most = schema::kMaxUnreadBytesPerPort - (short_one ? 0 : schema::kUnreadBytesForReaders);
  if (owed->bytes_in_all() + bytes.size() > most) return false;
  auto answer = std::make_unique<Untold>(Untold{bytes, owed});
  owed->add(bytes.size());
  Untold* const hint = answer.release();
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
  connections->end(client->second.descriptor, why);
  clients.erase(client);
  ended.push_back(id);
  if (ended.size() > 2 * kMaxConnections) ended.pop_front();
}

// Cuts those who take the least, until the others leave room for so many bytes more. The room is there when libzmq has
// seen that they are gone.
void ControlSockets::Impl::make_room(std::size_t bytes) {
  constexpr std::size_t kMost = schema::kMaxUnreadBytesPerPort - schema::kUnreadBytesForReaders;
  if (untaken->bytes + bytes <= kMost) return;
  settle();
  std::size_t of_open = bytes;
  for (const auto& [id, client] : clients) of_open += client.untaken->bytes();
  while (of_open > kMost) {
    const auto greediest = std::max_element(clients.begin(), clients.end(), [](const auto& a, const auto& b) {
      return a.second.untaken->bytes() < b.second.untaken->bytes();
    });
    if (greediest == clients.end()) return;
    of_open -= std::min(of_open, greediest->second.untaken->bytes());
    cut(std::string(greediest->first), kReadsNothing);
  }
}

ControlSockets::ControlSockets(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlSockets::~ControlSockets() = default;

Result<std::unique_ptr<ControlSockets>> ControlSockets::open(const schema::NodeConfig& config, Keyring& keyring,
                                                             Log& log) {
  const IoThreads threads = io_threads_of(config);
  auto impl = std::make_unique<Impl>(threads.count, config, keyring, log);
  try {
    impl->doorkeeper.start();
    if (Status bound = impl->bind(); !bound) return bound.error();
    if (Status bound = impl->bind_local(); !bound) return bound.error();
    for (const Seat peer : config.peers.places()) {
      if (peer == config.seat()) continue;
      impl->links[peer].io_threads = threads.of_peers[peer];
      impl->dial(peer);
    }
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
  // It does not matter if there is nothing to read: no wake-up is left over.
  [[maybe_unused]] const ssize_t ignored = ::read(impl_->wake_fd, &count, sizeof count);
}

void ControlSockets::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then the owner is woken already.
  [[maybe_unused]] const ssize_t ignored = ::write(impl_->wake_fd, &one, sizeof one);
}

void ControlSockets::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (now - impl_->looked < kConnectionTick) return;
  impl_->looked = now;
  try {
    impl_->watch_clients();
    for (const Seat peer : impl_->links.places())
      if (impl_->links[peer].link.dealer) impl_->watch(peer);
    impl_->bind_keys_of_now();
  } catch (const zmq::error_t& error) {
    impl_->log.warning("control-sockets", {{"error", error.what()}});
  }
}

std::optional<ClientMessage> ControlSockets::receive_client() {
  for (int taken = 0; taken < schema::kMaxMessagesPerTurn; ++taken) {
    char kind = impl_->next;
    Message received = impl_->receive_from(kind);
    impl_->next = kind == kTcp ? kLocal : kTcp;  // nobody keeps the other socket waiting
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
    if (kind == kTcp && message.well_formed) impl_->connections->spoke(received.descriptor);
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
    return impl_->send(impl_->local, id, std::make_shared<Untaken>(impl_->untaken_locally, false, -1), bytes);
  }
  const auto client = impl_->clients.find(id);
  if (client == impl_->clients.end()) return false;
  const std::shared_ptr<Untaken> untaken = client->second.untaken;
  if (untaken->bytes() + bytes.size() > schema::kMaxUnreadBytes) impl_->settle();
  if (untaken->bytes() > 0 && untaken->bytes() + bytes.size() > schema::kMaxUnreadBytes) {
    impl_->cut(id, kReadsNothing);
    return false;
  }
  impl_->make_room(bytes.size());
  return impl_->send(impl_->router, id, untaken, bytes);
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

std::size_t ControlSockets::untaken_bytes() const { return impl_->untaken->bytes; }

std::string ControlSockets::problem(Seat peer) const { return impl_->links[peer].problem; }

std::string ControlSockets::refusal(Seat peer) const {
  return impl_->links[peer].refused ? impl_->links[peer].problem : "";
}

}  // namespace tg::daemon
