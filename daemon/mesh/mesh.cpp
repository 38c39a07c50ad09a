#include "daemon/mesh/mesh.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "daemon/sockets/connections.h"
#include "daemon/sockets/dial.h"
#include "daemon/sockets/doorkeeper.h"
#include "daemon/sockets/name_watch.h"
#include "daemon/sockets/socket_options.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFramesPerTurn = 64;                 // then the thread looks around
constexpr std::uint64_t kHelloMs = 1000;           // to a connected peer
constexpr std::uint64_t kHelloConnectingMs = 200;  // until both directions work
constexpr std::chrono::milliseconds kPoll{50};     // how soon the receiving thread sees that it should stop
constexpr std::chrono::milliseconds kWatch{10};    // how soon it sees a broken connection while frames come
constexpr std::chrono::milliseconds kTick{250};    // links that only look up
// Between runs, a link that was up and has been silent this long in one direction is dialled again.
constexpr std::chrono::milliseconds kMostLinkSilence{4000};
constexpr std::chrono::milliseconds kProblemHolds{5000};  // since it was last noted
constexpr std::uint64_t kRedialMs = 1000;                 // between two dials of one peer
constexpr std::uint64_t kMostSilenceMs = 30'000;  // of a connection, at least; every node says hello each second
constexpr std::size_t kMostConnections = 4 * schema::kMostMembers;
constexpr std::chrono::minutes kBetweenStrangers{1};  // lines about them

// ZMTP 3.1: a flags byte, then the size in 1 byte, or in 8 bytes where it is above 255.
std::uint64_t wire_bytes(std::size_t size) { return size + (size > 255 ? schema::kMessageHeadBytes : 2); }

// ZeroMQ releases a frame's buffer on its own thread when the last peer has it.
void release_frame(void*, void* hint) { delete static_cast<schema::SharedFrame*>(hint); }

zmq::message_t message_of(const schema::SharedFrame& frame) {
  const std::span<const std::byte> bytes = frame->bytes();
  auto* keep = new schema::SharedFrame(frame);
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), release_frame, keep};
}

std::vector<std::string> hosts_of(const schema::NodeConfig& config) {
  std::vector<std::string> hosts;
  for (const schema::PeerAddress& peer : config.peers) hosts.push_back(peer.host);
  return hosts;
}

SocketOptions mesh_options(const schema::NodeConfig& config) {
  SocketOptions options;
  options.high_water_mark = schema::kMeshHighWaterMark;
  options.received_messages = schema::kMostReceivedFrames;
  options.most_message_bytes = schema::kMostFrameBytes;
  options.give_up_ms = config.peer_timeout_ms;
  return options;
}

// Of one peer. What both threads use is atomic.
struct PeerLink {
  // --- node's thread ---
  zmq::socket_t dealer;
  std::deque<schema::SharedFrame> waiting;
  std::uint64_t last_hello_ms = 0, dialled_ms = 0;
  std::uint64_t greeted = 0;             // the incarnation that our last hello said to have heard
  std::uint64_t greeted_connection = 0;  // the connection that our last hello went out on
  std::size_t cluster = 0;               // which cluster key we dial with next
  // --- both threads ---
  std::atomic<std::uint64_t> incarnation{0};  // the peer's, from its hello
  std::atomic<bool> up{false};
  std::atomic<std::uint64_t> connection{0};   // counts our connections to the peer, 0 = none now
  std::atomic<std::uint64_t> said{0};         // sequence of our last hello
  std::atomic<std::uint64_t> heard_hello{0};  // sequence of the peer's last hello
  std::atomic<bool> redial{false};            // our connection was refused, or only looks as if it stood
  // --- receiving thread ---
  zmq::socket_t monitor;  // says how our connection to the peer fares
  std::uint64_t connections = 0;
  std::string sender;            // the peer's connection to us, "" = none
  Clock::time_point heard_at{};  // the last frame of the peer
  Clock::time_point echo_at{};   // when the peer last told of a newer hello of ours
  std::uint64_t echo = 0;        // which one
  int bad_frames = 0;
  std::uint64_t cut_off_incarnation = 0;
  std::uint64_t rival = 0;  // the incarnation of another process that goes by the peer's name
};

// A connection to our ROUTER.
struct Sender {
  int descriptor = -1;
  User user;
  std::optional<Seat> seat;  // once its hello was taken
};

}  // namespace

struct Mesh::State {
  State(const schema::NodeConfig& c, std::uint64_t i, std::string b, Keyring& k, schema::FramePool& p, Log& l, Hooks h)
      : config(c),
        names_hash(schema::names_hash(c.peers)),
        incarnation(i),
        build(std::move(b)),
        keyring(k),
        pool(p),
        log(l),
        hooks(std::move(h)),
        doorkeeper(context, "mesh", keyring, Networks(hosts_of(config)), log),
        links(c.peers.size()),
        name_watch(hosts_of(config)) {
    for (const Seat seat : config.peers.places()) seat_of[config.peers[seat].name] = seat;
  }

  // --- node's thread ---
  void dial(Seat peer, std::uint64_t now_ms);
  bool say_hello(Seat peer);
  bool push(Seat peer, const schema::SharedFrame& frame);
  bool put_on_wire(Seat peer, const schema::SharedFrame& frame);
  void flush(Seat peer);
  void take_refusals(Seat peer);
  // --- receiving thread ---
  void receive_loop();
  bool receive_one();
  void take_monitors();
  void watch_connections();
  void watch_connection(Seat peer);
  void lost(Seat peer);
  void tick(Clock::time_point now);
  void bind_keys_of_now();
  Sender* sender_of(const std::string& id, zmq::message_t& body);
  void on_message(const std::string& id, std::shared_ptr<zmq::message_t> message);
  void on_hello(const std::string& id, Sender& sender, const schema::Hello& hello);
  bool is_rival(Seat peer, const std::string& id, const schema::Hello& hello) const;
  void on_rival(const std::string& id, Seat peer, const std::string& from, const schema::Hello& hello);
  void on_bad_frame(Sender& sender, const std::string& why);
  void refuse(const std::string& id, const std::string& why);
  void stranger(const std::string& from, const std::string& why);
  // --- any thread ---
  void note_problem(Seat peer, const std::string& why, bool waiting_helps = false);
  void forget_problem(Seat peer);

  const schema::NodeConfig config;
  const std::uint64_t names_hash;
  const std::uint64_t incarnation;
  const std::string build;
  Keyring& keyring;
  schema::FramePool& pool;
  Log& log;
  const Hooks hooks;
  zmq::context_t context{1};
  Doorkeeper doorkeeper;
  zmq::socket_t router;
  std::unique_ptr<Connections> connections;
  schema::KeyPair bound;  // the pair that the ROUTER is bound with
  Per<Seat, PeerLink> links;
  std::map<std::string, Seat> seat_of;
  std::map<std::string, Sender> senders;  // of the open connections, by routing id
  Clock::time_point next_stranger_line{}, counted{};
  std::uint64_t strangers = 0;
  std::thread receiver;
  std::atomic<bool> stopping{false}, in_run{false};
  std::atomic<std::uint64_t> sent_bytes{0};
  std::mutex monitors_mutex;
  std::vector<std::pair<Seat, zmq::socket_t>> monitors;  // of new connections, for the receiving thread
  NameWatch name_watch;
  mutable std::mutex problems_mutex;
  struct Noted {
    LinkProblem problem;
    Clock::time_point at;
  };
  std::map<Seat, Noted> problems;
};

Mesh::Mesh(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build, Keyring& keyring,
           schema::FramePool& pool, Log& log, Hooks hooks)
    : state_(std::make_unique<State>(config, incarnation, std::move(build), keyring, pool, log, std::move(hooks))) {}

Mesh::~Mesh() {
  stop_receiving();
  close(0);
}

Status Mesh::start() {
  State& s = *state_;
  try {
    s.doorkeeper.start();
    s.router = zmq::socket_t(s.context, zmq::socket_type::router);
    SocketOptions options = mesh_options(s.config);
    options.ipv6 = schema::is_ipv6(s.config.listen);
    set_socket_options(s.router, options);
    if (s.keyring.has_keys()) s.bound = s.keyring.own(0);
    s.doorkeeper.guard(s.router, s.bound);
    s.connections = std::make_unique<Connections>(
        s.context, s.router,
        ConnectionLimits{
            kMostConnections,
            std::chrono::milliseconds(std::max<std::uint64_t>(kMostSilenceMs, 3 * s.config.peer_timeout_ms)),
            schema::kMostFrameBytes},
        [&s](const std::string& address, const std::string& why) {
          s.log.warning("connection-cut", {{"port", "mesh"}, {"from", address}, {"why", why}});
        });
    if (Status bound = bind_socket(s.router, "mesh", s.config.listen, s.config.mesh_port()); !bound.ok()) return bound;
    for (const Seat seat : s.links.places())
      if (seat != s.config.seat()) s.dial(seat, 0);
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kIo, "cannot set up the mesh sockets: " + std::string(error.what()) +
                                     "; raise the limit of open files (ulimit -n)?"};
  }
  s.receiver = std::thread([&s] { s.receive_loop(); });
  return {};
}

// --- receiving thread ---

void Mesh::State::receive_loop() {
  Clock::time_point watched{}, ticked{};
  while (!stopping) {
    try {
      zmq::pollitem_t item{router.handle(), 0, ZMQ_POLLIN, 0};
      const bool idle = zmq::poll(&item, 1, kPoll) == 0;
      for (int taken = 0; !idle && taken < kFramesPerTurn && receive_one(); ++taken) {
      }
      // A look at every peer's monitor costs as much as a frame.
      const auto now = Clock::now();
      if (!idle && now - watched < kWatch) continue;
      watched = now;
      watch_connections();
      if (now - ticked < kTick) continue;
      ticked = now;
      tick(now);
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      log.error("mesh-receive-failed", {{"error", error.what()}});
      return;
    }
  }
}

bool Mesh::State::receive_one() {
  zmq::message_t id;
  auto body = std::make_shared<zmq::message_t>();
  if (!router.recv(id, zmq::recv_flags::dontwait)) return false;
  int parts = 0;
  while (router.get(zmq::sockopt::rcvmore)) {  // a frame is one part; more is malformed and read to its end
    if (!router.recv(*body, zmq::recv_flags::none)) break;
    ++parts;
  }
  if (parts == 1)
    on_message(id.to_string(), std::move(body));
  else if (Sender* sender = sender_of(id.to_string(), *body))
    on_bad_frame(*sender, "a message of " + std::to_string(parts) + " parts");
  return true;
}

void Mesh::State::take_monitors() {
  const std::lock_guard lock(monitors_mutex);
  for (auto& [peer, monitor] : monitors) links[peer].monitor = std::move(monitor);
  monitors.clear();
}

void Mesh::State::watch_connections() {
  take_monitors();
  for (const Seat peer : links.places())
    if (links[peer].monitor) watch_connection(peer);
  connections->take_events();
  if (const auto now = Clock::now(); now - counted >= kConnectionTick) {
    counted = now;
    connections->tick(now);
  }
  for (auto at = senders.begin(); at != senders.end();) {
    if (connections->open(at->second.descriptor)) {
      ++at;
      continue;
    }
    if (const std::optional<Seat> seat = at->second.seat; seat && links[*seat].sender == at->first) {
      links[*seat].sender.clear();
      lost(*seat);
    }
    at = senders.erase(at);
  }
}

// Our connection to the peer: the one that our frames go out on.
void Mesh::State::watch_connection(Seat peer) {
  PeerLink& link = links[peer];
  const std::string& name = config.peers[peer].name;
  while (const std::optional<DialEvent> event = next_event(link.monitor)) {
    if (*event == DialEvent::kConnected) {
      link.connection = ++link.connections;
      link.echo_at = Clock::now();
      continue;
    }
    link.connection = 0;
    lost(peer);
    if (*event == DialEvent::kDisconnected) continue;
    link.redial = true;
    if (*event == DialEvent::kKeyRefused)
      note_problem(peer, name + " refuses the key of " + config.node + "; give both the same cluster key file");
    else if (keyring.has_keys())
      note_problem(peer,
                   name + " has no keys, or others than " + config.node + "; give both the same cluster key file");
    else
      note_problem(peer, "what answers at " + config.peers[peer].mesh_endpoint() +
                             " is no tgd, or one with keys; mend " + "the peer line of " + name + ", or give " +
                             config.node + " its cluster key file");
  }
}

// Frames may be lost: even if the connection comes back, a step in progress cannot.
void Mesh::State::lost(Seat peer) {
  if (!links[peer].up.exchange(false)) return;
  log.warning("connection-lost", {{"peer", config.peers[peer].name}});
  hooks.connection(peer, false);
}

void Mesh::State::tick(Clock::time_point now) {
  if (in_run) return;  // Liveness and TCP decide then; a peer that stands still for a moment loses nothing
  bind_keys_of_now();
  for (const Seat peer : links.places()) {
    PeerLink& link = links[peer];
    if (!link.up || (now - link.heard_at < kMostLinkSilence && now - link.echo_at < kMostLinkSilence)) continue;
    note_problem(peer,
                 now - link.heard_at >= kMostLinkSilence
                     ? "nothing comes from " + config.peers[peer].name + " over its mesh connection"
                     : "nothing arrives at the mesh port of " + config.peers[peer].name,
                 true);
    lost(peer);
    link.redial = true;
  }
}

void Mesh::State::bind_keys_of_now() {
  if (!keyring.has_keys()) return;
  const schema::KeyPair own = keyring.own(0);
  if (own.open != bound.open && doorkeeper.rebind(router, own)) bound = own;
}

// What is known of a connection. Null: it has gone already, or is none of ours.
Sender* Mesh::State::sender_of(const std::string& id, zmq::message_t& body) {
  if (const auto known = senders.find(id); known != senders.end()) return &known->second;
  const int descriptor = Connections::descriptor(body);
  connections->take_events();
  if (!connections->open(descriptor)) return nullptr;
  std::optional<User> user;
  try {
    user = parse_user(body.gets("User-Id"));
  } catch (const zmq::error_t&) {  // it has none: no doorkeeper let it in
  }
  if (!user) {
    connections->end(descriptor, "nobody let it in");
    return nullptr;
  }
  return &senders.emplace(id, Sender{descriptor, *user, std::nullopt}).first->second;
}

void Mesh::State::on_message(const std::string& id, std::shared_ptr<zmq::message_t> message) {
  Sender* const sender = sender_of(id, *message);
  if (sender == nullptr) return;
  Result<schema::Frame> frame = schema::decode_frame({static_cast<const std::byte*>(message->data()), message->size()});
  if (!frame.ok()) return on_bad_frame(*sender, frame.error().message);
  connections->spoke(sender->descriptor);
  if (const auto* hello = std::get_if<schema::Hello>(&frame->body)) return on_hello(id, *sender, *hello);
  if (!sender->seat || links[*sender->seat].sender != id) return;  // no valid hello yet, or a connection of before
  PeerLink& link = links[*sender->seat];
  if (link.cut_off_incarnation == link.incarnation) return;
  link.heard_at = Clock::now();
  hooks.heard(*sender->seat);
  hooks.frame(*sender->seat, std::move(frame).value(), std::move(message));
}

void Mesh::State::on_bad_frame(Sender& sender, const std::string& why) {
  const std::string address = connections->address(sender.descriptor);
  if (!sender.seat) {
    stranger(address, "its first frame cannot be read: " + why);
    return connections->end(sender.descriptor, "no hello");
  }
  const Seat peer = *sender.seat;
  const std::string& name = config.peers[peer].name;
  PeerLink& link = links[peer];
  ++link.bad_frames;
  if (link.bad_frames > schema::kMostBadFrames) return;
  log.warning("frame-refused", {{"peer", name}, {"from", address}, {"why", why}, {"count", link.bad_frames}});
  if (link.bad_frames < schema::kMostBadFrames) return;
  link.cut_off_incarnation = link.incarnation;
  hooks.misbehaved(peer, name + " sent " + std::to_string(link.bad_frames) + " malformed frames, the last one: " + why +
                             "; is it the same build?");
}

// Tells whoever is at the other end; a sender that takes nothing misses it.
void Mesh::State::refuse(const std::string& id, const std::string& why) {
  const schema::SharedFrame frame = schema::encode_frame({}, schema::Refusal{config.node, why}, pool);
  try {
    if (router.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
      router.send(message_of(frame), zmq::send_flags::dontwait);
  } catch (const zmq::error_t&) {  // it has gone
  }
}

void Mesh::State::stranger(const std::string& from, const std::string& why) {
  ++strangers;
  if (Clock::now() < next_stranger_line) return;
  next_stranger_line = Clock::now() + kBetweenStrangers;
  log.warning("stranger-refused", {{"from", from}, {"why", why}, {"total", strangers}});
}

// Another process than the one that has this peer's place, while that one answers: it has to wait.
bool Mesh::State::is_rival(Seat peer, const std::string& id, const schema::Hello& hello) const {
  const PeerLink& link = links[peer];
  if (link.incarnation == 0 || link.incarnation == hello.incarnation || link.sender == id) return false;
  // Who has heard us is the one at the address of the peer line, and no other can be.
  if (hello.heard == incarnation) return false;
  return link.connection != 0 && !link.sender.empty() &&
         Clock::now() - link.heard_at < std::chrono::milliseconds(config.peer_timeout_ms);
}

void Mesh::State::on_rival(const std::string& id, Seat peer, const std::string& from, const schema::Hello& hello) {
  // The first time it may be a restarted process, and the end of the one before not seen yet.
  if (std::exchange(links[peer].rival, hello.incarnation) != hello.incarnation) return;
  const std::string& name = config.peers[peer].name;
  const std::string others = connections->address(senders[links[peer].sender].descriptor);
  note_problem(peer, "another process called " + name + " calls from " + from + ", beside the one at " + others +
                         "; are two nodes called " + name + "?");
  refuse(id,
         "another process called " + name + " is connected from " + others + "; are two nodes called " + name + "?");
}

void Mesh::State::on_hello(const std::string& id, Sender& sender, const schema::Hello& hello) {
  const std::string from = connections->address(sender.descriptor);
  const auto turn_away = [&](const std::string& why) {
    stranger(from, why);
    refuse(id, why);
  };
  if (!sender.user.may_be(hello.node))
    return turn_away("it says that it is " + hello.node + ", but its key is of " + format_user(sender.user));
  if (hello.node == config.node)
    return turn_away("two nodes are called " + config.node + ": the one at " + config.self().host + ", and one at " +
                     from);
  const auto known = seat_of.find(hello.node);
  if (known == seat_of.end())
    return turn_away("no peer line of " + config.node + " names " + hello.node +
                     "; give every node the same peer lines");
  const Seat peer = known->second;
  PeerLink& link = links[peer];
  const std::string& name = hello.node;
  const std::string& own = config.node;
  const auto differ = [&](const std::string& why) {
    note_problem(peer, why);
    refuse(id, why);
  };
  if (hello.protocol != schema::kProtocolVersion || hello.build != build) {
    return differ("builds differ: " + name + " runs " + hello.build + " (protocol " + std::to_string(hello.protocol) +
                  "), " + own + " runs " + build + " (protocol " + std::to_string(schema::kProtocolVersion) +
                  "); a run needs one build on all nodes: install the same package, or the same sources, on both");
  }
  if (hello.names_hash != names_hash) {
    return differ("peer lines differ: " + name + " knows " + hello.names + ", " + own + " knows " +
                  schema::joined(config.names()) + "; give every node the same set of peer names");
  }
  watch_connections();  // a hello may have waited in the queue while its sender died
  if (!senders.contains(id)) return;
  if (is_rival(peer, id, hello)) return on_rival(id, peer, from, hello);
  sender.seat = peer;
  link.sender = id;
  link.heard_at = Clock::now();
  link.heard_hello = hello.sequence;
  if (hello.heard == incarnation && hello.echo > link.echo) {
    link.echo = hello.echo;
    link.echo_at = link.heard_at;
  }
  const std::uint64_t before = link.incarnation.exchange(hello.incarnation);
  if (before != hello.incarnation) {
    link.bad_frames = 0;
    if (before != 0) {
      if (link.up.exchange(false)) hooks.connection(peer, false);
      hooks.misbehaved(peer, name + " was restarted");
    }
  }
  hooks.heard(peer);
  const bool up = hello.heard == incarnation && link.connection != 0 && link.cut_off_incarnation != hello.incarnation;
  if (link.up.exchange(up) != up) {
    if (up) forget_problem(peer);
    log.info(up ? "peer-connected" : "peer-disconnected", {{"peer", name}});
    hooks.connection(peer, up);
  }
}

// --- node's thread ---

// A new connection to the peer in place of the one before, with the next of our keys.
void Mesh::State::dial(Seat peer, std::uint64_t now_ms) {
  PeerLink& link = links[peer];
  const schema::PeerAddress& address = config.peers[peer];
  link.dialled_ms = now_ms;
  link.redial = false;
  link.connection = 0;
  std::optional<Introduction> introduction;
  if (keyring.has_keys()) {
    introduction = Introduction{keyring.own(link.cluster), keyring.node(link.cluster, address.name)};
    ++link.cluster;
  }
  SocketOptions options = mesh_options(config);
  options.ipv6 = takes_ipv6(address.host, config.listen);
  Dial made = daemon::dial(context, options, introduction, address.mesh_endpoint());
  link.dealer = std::move(made.dealer);  // the one before closes
  const std::lock_guard lock(monitors_mutex);
  monitors.emplace_back(peer, std::move(made.monitor));
}

bool Mesh::State::put_on_wire(Seat peer, const schema::SharedFrame& frame) {
  zmq::message_t message = message_of(frame);
  const std::size_t size = message.size();
  try {
    if (!links[peer].dealer.send(message, zmq::send_flags::dontwait)) return false;
  } catch (const zmq::error_t& error) {
    log.warning("send-failed", {{"peer", config.peers[peer].name}, {"error", error.what()}});
    return false;
  }
  sent_bytes += wire_bytes(size);
  return true;
}

// The first frame of a connection is a hello: without one its other end does not know whose the frames are.
bool Mesh::State::push(Seat peer, const schema::SharedFrame& frame) {
  PeerLink& link = links[peer];
  if (link.greeted_connection != link.connection && !say_hello(peer)) return false;
  return put_on_wire(peer, frame);
}

bool Mesh::State::say_hello(Seat peer) {
  PeerLink& link = links[peer];
  const std::uint64_t connection = link.connection, heard = link.incarnation;
  const schema::Hello hello{schema::kProtocolVersion,
                            build,
                            config.node,
                            incarnation,
                            names_hash,
                            heard,
                            link.said + 1,
                            link.heard_hello,
                            schema::joined(config.names())};
  if (!put_on_wire(peer, schema::encode_frame({}, hello, pool))) return false;
  ++link.said;
  link.greeted = heard;
  link.greeted_connection = connection;
  return true;
}

void Mesh::State::flush(Seat peer) {
  std::deque<schema::SharedFrame>& waiting = links[peer].waiting;
  while (!waiting.empty() && push(peer, waiting.front())) waiting.pop_front();
}

// What the peer's port says to a connection that it does not take.
void Mesh::State::take_refusals(Seat peer) {
  zmq::message_t message;
  while (links[peer].dealer.recv(message, zmq::recv_flags::dontwait)) {
    const Result<schema::Frame> frame = schema::decode_frame({message.data<std::byte>(), message.size()});
    const auto* refusal = frame.ok() ? std::get_if<schema::Refusal>(&frame->body) : nullptr;
    if (refusal != nullptr) note_problem(peer, refusal->node + " refuses " + config.node + ": " + refusal->message);
  }
}

std::optional<Seat> Mesh::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  State& s = *state_;
  std::optional<Seat> full;
  for (const Seat peer : to) {
    s.flush(peer);
    if (s.links[peer].waiting.empty() && s.push(peer, frame)) continue;
    if (s.links[peer].waiting.size() >= kMostWaitingFrames)
      full = peer;
    else
      s.links[peer].waiting.push_back(frame);
  }
  return full;
}

void Mesh::tick(std::uint64_t now_ms) {
  State& s = *state_;
  for (const Seat peer : s.links.places()) {
    if (peer == s.config.seat()) continue;
    PeerLink& link = s.links[peer];
    try {
      s.take_refusals(peer);
      if (link.redial && now_ms - link.dialled_ms >= kRedialMs) s.dial(peer, now_ms);
    } catch (const zmq::error_t& error) {
      s.log.warning("dial-failed", {{"peer", s.config.peers[peer].name}, {"error", error.what()}});
      link.dialled_ms = now_ms;
      link.redial = true;
    }
    const std::uint64_t period = link.up ? kHelloMs : kHelloConnectingMs;
    const bool news = link.greeted != link.incarnation || link.greeted_connection != link.connection;
    // Without a connection there is nobody to greet: the next tick tries again.
    if (news || now_ms - link.last_hello_ms >= period) {
      s.say_hello(peer);
      link.last_hello_ms = now_ms;
    }
    s.flush(peer);
  }
}

void Mesh::set_in_run(bool in_run) { state_->in_run = in_run; }

void Mesh::forget_waiting() {
  for (PeerLink& link : state_->links) link.waiting.clear();
}

void Mesh::close(int linger_ms) {
  for (PeerLink& link : state_->links) {
    if (!link.dealer) continue;
    link.dealer.set(zmq::sockopt::linger, linger_ms);
    link.dealer.close();
  }
}

// --- any thread ---

std::uint64_t Mesh::sent_bytes() const { return state_->sent_bytes; }

void Mesh::State::note_problem(Seat peer, const std::string& why, bool waiting_helps) {
  const std::lock_guard lock(problems_mutex);
  Noted& noted = problems[peer];
  if (noted.problem.why != why) log.warning("link-problem", {{"peer", config.peers[peer].name}, {"why", why}});
  noted = {{why, waiting_helps}, Clock::now()};
}

void Mesh::State::forget_problem(Seat peer) {
  const std::lock_guard lock(problems_mutex);
  problems.erase(peer);
}

std::optional<LinkProblem> Mesh::problem(Seat peer) const {
  const State& s = *state_;
  if (peer == s.config.seat()) return std::nullopt;
  const PeerLink& link = s.links[peer];
  const schema::PeerAddress& address = s.config.peers[peer];
  {
    // What was refused is refused again each second; older news are of another time.
    const std::lock_guard lock(s.problems_mutex);
    const auto found = s.problems.find(peer);
    if (found != s.problems.end() && Clock::now() - found->second.at < kProblemHolds) return found->second.problem;
  }
  if (link.up) return std::nullopt;
  if (const std::string unresolved = s.name_watch.problem(address.host); !unresolved.empty())
    return LinkProblem{unresolved, true};
  const std::string port = schema::host_and_port(address.host, address.port);
  if (link.connection == 0) return LinkProblem{"its mesh port " + port + " cannot be reached", true};
  const schema::PeerAddress& own = s.config.self();
  return LinkProblem{"it does not reach the mesh port of " + own.name + ", " +
                         schema::host_and_port(own.host, own.port) + " in its peer lines",
                     true};
}

bool Mesh::up(Seat peer) const { return peer == state_->config.seat() || state_->links[peer].up; }

std::uint64_t Mesh::incarnation(Seat peer) const { return state_->links[peer].incarnation; }

void Mesh::stop_receiving() {
  State& s = *state_;
  s.stopping = true;
  if (s.receiver.joinable()) s.receiver.join();
  s.take_monitors();
  for (PeerLink& link : s.links)
    if (link.monitor) link.monitor.close();
  s.connections.reset();
  if (s.router) s.router.close();
}

}  // namespace tg::daemon
