#include "daemon/mesh/mesh.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "daemon/mesh/socket_options.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr int kFramesPerTurn = 64;                 // then the thread looks around
constexpr std::uint64_t kHelloMs = 1000;           // to a connected peer
constexpr std::uint64_t kHelloConnectingMs = 200;  // until both directions work
constexpr std::chrono::milliseconds kPoll{50};     // how soon the receiving thread sees that it should stop
constexpr std::chrono::milliseconds kWatch{10};    // how soon it sees a broken connection while frames come

// ZMTP 3.1: a flags byte, then the size in 1 byte, or in 8 bytes where it is above 255.
std::uint64_t wire_bytes(std::size_t size) { return size + (size > 255 ? schema::kMessageHeadBytes : 2); }

// ZeroMQ releases a frame's buffer on its own thread when the last peer has it.
void release_frame(void*, void* hint) { delete static_cast<schema::SharedFrame*>(hint); }

zmq::message_t message_of(const schema::SharedFrame& frame) {
  const std::span<const std::byte> bytes = frame->bytes();
  auto* keep = new schema::SharedFrame(frame);
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), release_frame, keep};
}

struct PeerLink {
  // node's thread
  zmq::socket_t dealer;
  std::deque<schema::SharedFrame> waiting;
  std::uint64_t last_hello_ms = 0;
  std::uint64_t greeted = 0;  // the incarnation that our last hello said to have heard
  // both threads
  std::atomic<std::uint64_t> incarnation{0};  // the peer's, from its hello
  std::atomic<bool> up{false};
  // receiving thread
  bool dealer_connected = false;
  zmq::socket_t monitor;  // says when the DEALER's connection breaks: the peer's process ended, or the network cut it
  int bad_frames = 0;
  std::uint64_t cut_off_incarnation = 0;
};

}  // namespace

struct Mesh::State {
  State(const schema::NodeConfig& c, std::uint64_t i, std::string b, schema::FramePool& p, Log& l, Hooks h)
      : config(c), incarnation(i), build(std::move(b)), pool(p), log(l), hooks(std::move(h)), links(c.peers.size()) {
    for (const Seat seat : config.peers.places()) seat_of[config.peers[seat].name] = seat;
  }

  void monitor_dealer(Seat peer);
  void receive_loop();
  bool receive_one();
  void watch_connections();
  void on_message(const std::string& sender, std::shared_ptr<zmq::message_t> message);
  void on_hello(Seat peer, const schema::Hello& hello);
  void on_bad_frame(Seat peer, const std::string& why);
  void refuse(Seat peer, const std::string& why);
  void send_hello(Seat peer, std::uint64_t heard);
  bool push(Seat peer, const schema::SharedFrame& frame);
  void flush(Seat peer);

  const schema::NodeConfig config;
  const std::uint64_t incarnation;
  const std::string build;
  schema::FramePool& pool;
  Log& log;
  const Hooks hooks;
  zmq::context_t context{1};
  zmq::socket_t router;
  Per<Seat, PeerLink> links;
  std::map<std::string, Seat> seat_of;
  std::map<std::string, int> strangers;  // receiving thread; bounded below
  std::thread receiver;
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> sent_bytes{0};
  mutable std::mutex problems_mutex;
  std::map<Seat, std::string> problems;
};

Mesh::Mesh(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build, schema::FramePool& pool,
           Log& log, Hooks hooks)
    : state_(std::make_unique<State>(config, incarnation, std::move(build), pool, log, std::move(hooks))) {}

Mesh::~Mesh() {
  stop_receiving();
  close(0);
}

Status Mesh::start() {
  State& s = *state_;
  const schema::PeerAddress& self = s.config.self();
  SocketOptions options;
  options.high_water_mark = schema::kMeshHighWaterMark;
  options.most_message_bytes = schema::kMostFrameBytes;
  options.give_up_ms = s.config.peer_timeout_ms;
  try {
    s.router = zmq::socket_t(s.context, zmq::socket_type::router);
    set_socket_options(s.router, options);
    s.router.set(zmq::sockopt::router_handover, true);  // a restarted peer takes its name over from its dead connection
    if (Status bound = bind_socket(s.router, "mesh", s.config.listen, self.port); !bound.ok()) return bound;
    for (const Seat seat : s.links.places()) {
      if (seat == s.config.seat()) continue;
      zmq::socket_t& dealer = s.links[seat].dealer;
      dealer = zmq::socket_t(s.context, zmq::socket_type::dealer);
      set_socket_options(dealer, options);
      set_family(dealer, s.config.peers[seat].host, s.config.listen);
      dealer.set(zmq::sockopt::routing_id, self.name);
      s.monitor_dealer(seat);
      dealer.connect(s.config.peers[seat].mesh_endpoint());
    }
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kIo, "cannot set up the mesh sockets: " + std::string(error.what()) +
                                     "; raise the limit of open files (ulimit -n)?"};
  }
  s.receiver = std::thread([&s] { s.receive_loop(); });
  return {};
}

// --- receiving thread ---

// Called before the receiving thread starts; the monitor's end is that thread's from then on.
void Mesh::State::monitor_dealer(Seat peer) {
  const std::string endpoint = "inproc://monitor-" + std::to_string(peer.index());
  if (zmq_socket_monitor(links[peer].dealer.handle(), endpoint.c_str(), ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED) !=
      0)
    throw zmq::error_t();
  links[peer].monitor = zmq::socket_t(context, zmq::socket_type::pair);
  links[peer].monitor.set(zmq::sockopt::linger, 0);
  links[peer].monitor.connect(endpoint);
}

void Mesh::State::receive_loop() {
  std::chrono::steady_clock::time_point watched{};
  while (!stopping) {
    try {
      zmq::pollitem_t item{router.handle(), 0, ZMQ_POLLIN, 0};
      const bool idle = zmq::poll(&item, 1, kPoll) == 0;
      for (int taken = 0; !idle && taken < kFramesPerTurn && receive_one(); ++taken) {
      }
      // A look at every peer's monitor costs as much as a frame.
      const auto now = std::chrono::steady_clock::now();
      if (!idle && now - watched < kWatch) continue;
      watched = now;
      watch_connections();
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      log.error("mesh-receive-failed", {{"error", error.what()}});
      return;
    }
  }
}

bool Mesh::State::receive_one() {
  zmq::message_t sender;
  auto body = std::make_shared<zmq::message_t>();
  if (!router.recv(sender, zmq::recv_flags::dontwait)) return false;
  int parts = 0;
  while (router.get(zmq::sockopt::rcvmore)) {  // a frame is one part; more is malformed and read to its end
    if (!router.recv(*body, zmq::recv_flags::none)) break;
    ++parts;
  }
  if (parts == 1)
    on_message(sender.to_string(), std::move(body));
  else if (const auto known = seat_of.find(sender.to_string()); known != seat_of.end())
    on_bad_frame(known->second, "a message of " + std::to_string(parts) + " parts");
  return true;
}

void Mesh::State::watch_connections() {
  for (const Seat peer : links.places()) {
    PeerLink& link = links[peer];
    if (!link.monitor) continue;
    zmq::message_t event, address;
    while (link.monitor.recv(event, zmq::recv_flags::dontwait)) {
      if (!link.monitor.recv(address, zmq::recv_flags::dontwait) || event.size() < sizeof(std::uint16_t)) break;
      std::uint16_t what = 0;
      std::memcpy(&what, event.data(), sizeof what);
      link.dealer_connected = what == ZMQ_EVENT_CONNECTED;
      if (link.dealer_connected || !link.up.exchange(false)) continue;
      // Frames may be lost: even if the connection comes back, a step in progress cannot.
      log.warning("connection-lost", {{"peer", config.peers[peer].name}});
      hooks.connection(peer, false);
    }
  }
}

void Mesh::State::on_message(const std::string& sender, std::shared_ptr<zmq::message_t> message) {
  const auto known = seat_of.find(sender);
  if (known == seat_of.end() || known->second == config.seat()) {
    if (strangers.size() < schema::kMostMembers && strangers[sender]++ == 0)
      log.warning("stranger-refused",
                  {{"bytes", message->size()}, {"hint", "its name is not in this node's peer lines"}});
    return;
  }
  const Seat peer = known->second;
  PeerLink& link = links[peer];
  Result<schema::Frame> frame = schema::decode_frame({static_cast<const std::byte*>(message->data()), message->size()});
  if (!frame.ok()) {
    on_bad_frame(peer, frame.error().message);
    return;
  }
  if (const auto* hello = std::get_if<schema::Hello>(&frame->body)) {
    on_hello(peer, *hello);
    return;
  }
  if (link.incarnation == 0 || link.cut_off_incarnation == link.incarnation) return;  // no valid hello yet, or cut off
  hooks.heard(peer);
  hooks.frame(peer, std::move(frame).value(), std::move(message));
}

void Mesh::State::on_bad_frame(Seat peer, const std::string& why) {
  PeerLink& link = links[peer];
  ++link.bad_frames;
  if (link.bad_frames > schema::kMostBadFrames) return;
  log.warning("frame-refused", {{"peer", config.peers[peer].name}, {"why", why}, {"count", link.bad_frames}});
  if (link.bad_frames < schema::kMostBadFrames) return;
  link.cut_off_incarnation = link.incarnation;
  hooks.misbehaved(peer, config.peers[peer].name + " sent " + std::to_string(link.bad_frames) +
                             " malformed frames, the last one: " + why + "; is it the same build?");
}

void Mesh::State::refuse(Seat peer, const std::string& why) {
  const std::lock_guard lock(problems_mutex);
  if (problems[peer] != why) log.warning("hello-refused", {{"peer", config.peers[peer].name}, {"why", why}});
  problems[peer] = why;
}

void Mesh::State::on_hello(Seat peer, const schema::Hello& hello) {
  PeerLink& link = links[peer];
  const std::string& name = config.peers[peer].name;
  const std::string& own = config.node;
  if (hello.protocol != schema::kProtocolVersion || hello.build != build) {
    return refuse(peer, "builds differ: " + name + " runs " + hello.build + " (protocol " +
                            std::to_string(hello.protocol) + "), " + own + " runs " + build + " (protocol " +
                            std::to_string(schema::kProtocolVersion) + "); install one build everywhere");
  }
  const std::uint64_t names = schema::names_hash(config.peers);
  if (hello.node != name || hello.names_hash != names) {
    return refuse(peer, "peer lines differ between " + name + " and " + own +
                            "; give every node the same set of peer names (hashes " + std::to_string(hello.names_hash) +
                            " and " + std::to_string(names) + ")");
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
  watch_connections();  // a hello may have waited in the queue while its sender died
  const bool up = hello.heard == incarnation && link.dealer_connected && link.cut_off_incarnation != hello.incarnation;
  if (link.up.exchange(up) != up) {
    {
      const std::lock_guard lock(problems_mutex);
      problems.erase(peer);
    }
    log.info(up ? "peer-connected" : "peer-disconnected", {{"peer", name}});
    hooks.connection(peer, up);
  }
}

// --- node's thread ---

bool Mesh::State::push(Seat peer, const schema::SharedFrame& frame) {
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

void Mesh::State::flush(Seat peer) {
  std::deque<schema::SharedFrame>& waiting = links[peer].waiting;
  while (!waiting.empty() && push(peer, waiting.front())) waiting.pop_front();
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

void Mesh::State::send_hello(Seat peer, std::uint64_t heard) {
  const schema::Hello hello{schema::kProtocolVersion,         build, config.node, incarnation,
                            schema::names_hash(config.peers), heard};
  push(peer, schema::encode_frame({}, hello,
                                  pool));  // without a connection there is nobody to greet: the next tick tries again
}

void Mesh::tick(std::uint64_t now_ms) {
  State& s = *state_;
  for (const Seat peer : s.links.places()) {
    if (peer == s.config.seat()) continue;
    PeerLink& link = s.links[peer];
    const std::uint64_t period = link.up ? kHelloMs : kHelloConnectingMs;
    const std::uint64_t incarnation = link.incarnation;
    if (link.greeted != incarnation || now_ms - link.last_hello_ms >= period) {
      s.send_hello(peer, incarnation);
      link.greeted = incarnation;
      link.last_hello_ms = now_ms;
    }
    s.flush(peer);
  }
}

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

std::string Mesh::problem(Seat peer) const {
  const std::lock_guard lock(state_->problems_mutex);
  const auto found = state_->problems.find(peer);
  return found == state_->problems.end() ? "" : found->second;
}

void Mesh::stop_receiving() {
  State& s = *state_;
  s.stopping = true;
  if (s.receiver.joinable()) s.receiver.join();
  for (PeerLink& link : s.links)
    if (link.monitor) link.monitor.close();
  if (s.router) s.router.close();
}

}  // namespace tg::daemon
