#include "daemon/mesh/inbound.h"

#include <algorithm>

#include "daemon/access/connection.h"
#include "daemon/mesh/mesh_sockets.h"
#include "engine/resources/descriptors.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr int kFramesPerTurn = 64;                    // frames read before the connections are checked
constexpr std::chrono::milliseconds kPoll{50};        // how soon the thread notices that it should stop
constexpr std::chrono::milliseconds kWatch{10};       // how soon it notices a broken connection while frames arrive
constexpr std::chrono::milliseconds kTick{250};       // how often links are checked for silence
constexpr std::chrono::milliseconds kMaxPause{2000};  // a longer time between two ticks means a suspended process
// How long a key rotation takes from the first node's port to the last: each node checks its file every second.
constexpr std::chrono::milliseconds kMaxRebind{3000};
constexpr std::uint64_t kMaxSilenceMs = 30'000;  // a connection's minimum; every node sends a hello each second
constexpr std::size_t kMaxConnections = 4 * schema::kMaxMembers;

}  // namespace

Inbound::Inbound(const MeshIdentity& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
                 schema::FramePool& pool, Log& log, MeshHooks hooks, Outbound& outbound)
    : self_(self),
      links_(links),
      context_(context),
      keyring_(keyring),
      pool_(pool),
      log_(log),
      hooks_(std::move(hooks)),
      outbound_(outbound),
      authenticator_(context, "mesh", keyring, Networks(self.config.nodes, {}), log),
      peers_(self.config.nodes.kMaxNodes) {}

Status Inbound::bind() {
  const schema::NodeConfig& config = self_.config;
  authenticator_.start();
  router_ = zmq::socket_t(context_, zmq::socket_type::router);
  SocketOptions options = mesh_options(config);
  options.ipv6 = schema::is_ipv6(config.listen);
  set_socket_options(router_, options);
  if (keyring_.has_keys()) bound_ = keyring_.own_keys(0);
  authenticator_.secure(router_, bound_);
  const std::chrono::milliseconds max_silence(std::max<std::uint64_t>(kMaxSilenceMs, 3 * config.peer_timeout_ms));
  connections_ = std::make_unique<AcceptedConnections>(
      context_, router_,
      ConnectionLimits{
          std::min(kMaxConnections, schema::connections_of(engine::allowed_descriptors(), config.peers.size())),
          max_silence, schema::kMaxFrameBytes},
      "mesh", log_);
  return bind_socket(router_, "mesh", config.listen, config.mesh_port());
}

void Inbound::start() {
  thread_ = std::thread([this] { receive_loop(); });
}

void Inbound::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  take_monitors();
  for (Peer& peer : peers_)
    if (peer.monitor) peer.monitor.close();
  connections_.reset();
  if (router_) router_.close();
}

void Inbound::receive_loop() {
  Clock::time_point watched{}, ticked{};
  while (!stopping_) {
    try {
      zmq::pollitem_t item{router_.handle(), 0, ZMQ_POLLIN, 0};
      const bool idle = zmq::poll(&item, 1, kPoll) == 0;
      for (int taken = 0; !idle && taken < kFramesPerTurn && receive_one(); ++taken) {
      }
      // Checking every peer's monitor costs as much as a frame.
      const auto now = Clock::now();
      if (!idle && now - watched < kWatch) continue;
      watched = now;
      watch_connections();
      if (now - ticked < kTick) continue;
      ticked = now;
      tick(now);
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      log_.error("mesh-receive-failed", {{"error", error.what()}});
      return;
    }
  }
}

bool Inbound::receive_one() {
  zmq::message_t id;
  auto body = std::make_shared<zmq::message_t>();
  if (!router_.recv(id, zmq::recv_flags::dontwait)) return false;
  int parts = 0;
  while (router_.get(zmq::sockopt::rcvmore)) {  // a frame has one part; a malformed one is read to its end
    if (!router_.recv(*body, zmq::recv_flags::none)) break;
    ++parts;
  }
  if (parts == 1)
    on_message(id.to_string(), std::move(body));
  else if (Sender* sender = sender_of(id.to_string(), *body))
    on_bad_frame(*sender, "a message of " + std::to_string(parts) + " parts");
  return true;
}

// --- connections ---

void Inbound::take_monitors() {
  for (Outbound::MonitoredConnection& one : outbound_.take_monitors()) {
    peers_[one.peer].monitor = std::move(one.monitor);
    peers_[one.peer].dial = one.dial;
  }
}

void Inbound::watch_connections() {
  take_monitors();
  for (const Seat peer : self_.config.nodes.all())
    if (peers_[peer].monitor) watch_connection(peer);
  connections_->process_events();
  if (const auto now = Clock::now(); now - counted_ >= kConnectionTick) {
    counted_ = now;
    connections_->tick(now);
  }
  for (auto at = senders_.begin(); at != senders_.end();) {
    if (connections_->is_open(at->second.descriptor)) {
      ++at;
      continue;
    }
    if (const std::optional<Seat> seat = at->second.seat; seat && peers_[*seat].sender == at->first) {
      peers_[*seat].sender.clear();
      peers_[*seat].hears_us = false;
      mark_down(*seat);
    }
    at = senders_.erase(at);
  }
}

// Handles the events of our connection to the peer, which carries our frames.
void Inbound::watch_connection(Seat seat) {
  Peer& peer = peers_[seat];
  Link& link = links_[seat];
  while (const std::optional<ConnectionEvent> event = next_event(peer.monitor)) {
    if (peer.dial != link.dials) continue;  // an event of a connection that was replaced
    if (*event == ConnectionEvent::kConnected) {
      mark_down(seat);  // up: this connection replaces one, of another peer line, with what was on its way
      link.connection = ++peer.connections;
      link.redial = false;  // libzmq has retried by itself
      link.echoed_at = Clock::now();
      // The peer's next hello may be a second away. After a power-off the silence is longer.
      if (!link.up && Clock::now() - link.received_at.load() < kMaxLinkSilence) update_link(seat);
      continue;
    }
    link.connection = 0;
    mark_down(seat);
    // With two cluster keys libzmq would retry with the key that the port had before.
    if (*event == ConnectionEvent::kDisconnected && keyring_.has_keys() && keyring_.cluster_count() > 1)
      link.redial = true;
    if (*event == ConnectionEvent::kDisconnected) continue;
    link.redial = true;
    const schema::PeerAddress address = self_.config.nodes.line(seat);
    const bool changes = is_rekeying(seat);
    const ConnectFailure failure{.place = schema::host_and_port(address.host, address.port),
                                 .peer = name(seat),
                                 .own = self_.config.node,
                                 .has_keys = keyring_.has_keys()};
    links_.note_problem(
        seat,
        changes ? name(seat) + " or " + failure.own + " is changing its cluster key" : explain_failure(*event, failure),
        changes || *event == ConnectionEvent::kSilent);
  }
}

// Frames may be lost: even if the connection comes back, the view cannot continue; the next one recovers.
void Inbound::mark_down(Seat peer) {
  if (!links_[peer].up) return;
  // While the file holds both keys of a rotation, the rotation may be the cause.
  links_[peer].rekeying = is_rekeying(peer) || (keyring_.has_keys() && keyring_.cluster_count() > 1);
  if (!links_[peer].up.exchange(false)) return;
  log_.warning("connection-lost", {{"peer", name(peer)}});
  hooks_.on_connection_changed(peer, false);
}

void Inbound::tick(Clock::time_point now) {
  close_revoked();
  if (!prepares_ && key_changed()) rebind_port();
  // After a pause of this process itself the silence proves nothing: what was sent may still wait to be read.
  if (now - std::exchange(ticked_, now) > kMaxPause) {
    for (const Seat seat : self_.config.nodes.all()) links_[seat].received_at = links_[seat].echoed_at = now;
    return;
  }
  const auto most = max_silence();
  for (const Seat seat : self_.config.nodes.all()) {
    const Link& link = links_[seat];
    // Only hellos that were sent have an echo.
    const bool no_input = now - link.received_at.load() >= most,
               no_echo = now - link.echoed_at.load() >= most && link.hello_sent >= peers_[seat].echo + 2;
    if (link.up && link.connection == 0) mark_down(seat);
    if (!link.up || (!no_input && !no_echo)) continue;
    links_.note_problem(seat,
                        no_input ? "no data from " + name(seat) + " on its mesh connection"
                                 : "no data arrives at the mesh port of " + name(seat),
                        true);
    mark_down(seat);
    links_[seat].redial = true;
  }
}

// Redialling loses frames and costs a run a view change, so during a run a link may be silent as long as a member may.
std::chrono::milliseconds Inbound::max_silence() const {
  const std::chrono::milliseconds peer_timeout(self_.config.peer_timeout_ms);
  return in_run_ ? std::max(peer_timeout, kMaxLinkSilence) : kMaxLinkSilence;
}

// Those of nodes whose peer line has gone, too.
void Inbound::close_revoked() {
  for (const auto& [id, sender] : senders_)
    if (sender.seat && !self_.config.nodes.is_listed(*sender.seat))
      connections_->close(sender.descriptor, "no peer line of " + self_.config.node + " names it any more");
  for (const auto& [id, sender] : senders_)
    if (!keyring_.find_user(sender.identity)) connections_->close(sender.descriptor, Keyring::kKeyRevoked);
}

bool Inbound::key_changed() const {
  if (!keyring_.has_keys()) return false;
  const std::lock_guard lock(bound_mutex_);
  return keyring_.own_keys(0).public_key != bound_.public_key;
}

// Marks the links down before they are cut, so that no operation begins that could not end. Our hellos tell the peers.
void Inbound::take_links_down() {
  links_.rebinding = true;
  for (const Seat seat : self_.config.nodes.all()) {
    if (links_[seat].up) links_[seat].rekeying = true;
    if (!links_[seat].up.exchange(false)) continue;
    links_.note_problem(seat, "the mesh port of " + self_.config.node + " is being bound with the new cluster key",
                        true);
    hooks_.on_connection_changed(seat, false);
  }
}

// Whether a rotation is in progress, or the peer was dialled before it: other keys are tried before an error is noted.
bool Inbound::is_rekeying(Seat peer) const {
  if (!keyring_.has_keys()) return false;
  return Clock::now() - rebound_ < kMaxRebind || key_changed() ||
         links_[peer].port_key != Keyring::fingerprint(keyring_.node_key(0, name(peer)));
}

// Our port has the new key and the peer's port still the old one, so the link will be cut once more unless the peer
// does not get the new key file. A run does not wait for that.
bool Inbound::peer_will_rebind(Seat peer) const {
  return !in_run_ && keyring_.has_keys() && Clock::now() - rebound_ < kMaxRebind && !links_[peer].up &&
         links_[peer].port_key != Keyring::fingerprint(keyring_.node_key(0, name(peer)));
}

void Inbound::rebind_port() {
  take_links_down();
  const schema::KeyPair own = keyring_.own_keys(0);
  if (!authenticator_.rebind(router_, own)) return;
  const std::lock_guard lock(bound_mutex_);
  bound_ = own;
  rebound_ = Clock::now();
  links_.rebinding = false;
}

// --- frames ---

// The record of a connection. Null if it has closed or was not accepted here.
Inbound::Sender* Inbound::sender_of(const std::string& id, zmq::message_t& body) {
  if (const auto known = senders_.find(id); known != senders_.end()) return &known->second;
  const int descriptor = AcceptedConnections::descriptor(body);
  connections_->process_events();
  if (!connections_->is_open(descriptor)) return nullptr;
  std::string identity;
  try {
    identity = body.gets("User-Id");
  } catch (const zmq::error_t&) {  // it has no identity: it was not authenticated
  }
  if (!keyring_.find_user(identity)) {
    connections_->close(descriptor, identity.empty() ? "not authenticated" : Keyring::kKeyRevoked);
    return nullptr;
  }
  return &senders_.emplace(id, Sender{descriptor, std::move(identity), std::nullopt}).first->second;
}

void Inbound::on_message(const std::string& id, std::shared_ptr<zmq::message_t> message) {
  Sender* const sender = sender_of(id, *message);
  if (sender == nullptr) return;
  if (sender->seat) links_[*sender->seat].received_bytes += wire_bytes(message->size());
  Result<schema::Frame> frame = schema::decode_frame({static_cast<const std::byte*>(message->data()), message->size()});
  if (!frame.ok()) return on_bad_frame(*sender, frame.error().message);
  connections_->on_message(sender->descriptor);
  if (const auto* hello = std::get_if<schema::Hello>(&frame->body)) return on_hello(id, *sender, *hello);
  if (!sender->seat || peers_[*sender->seat].sender != id) return;  // no valid hello yet, or a replaced connection
  const Seat seat = *sender->seat;
  if (peers_[seat].cut_off_incarnation == links_[seat].incarnation) return;
  links_[seat].received_at = Clock::now();
  hooks_.on_traffic(seat);
  hooks_.on_frame(seat, std::move(frame).value(), std::move(message));
}

void Inbound::on_bad_frame(Sender& sender, const std::string& why) {
  const std::string address = connections_->address(sender.descriptor);
  if (!sender.seat) {
    report_unknown(address, "its first frame cannot be read: " + why);
    return connections_->close(sender.descriptor, "no hello");
  }
  const Seat seat = *sender.seat;
  Peer& peer = peers_[seat];
  ++peer.bad_frames;
  ++links_.malformed;
  if (peer.bad_frames > schema::kMaxBadFrames) return;
  log_.warning("frame-refused", {{"peer", name(seat)}, {"from", address}, {"why", why}, {"count", peer.bad_frames}});
  if (peer.bad_frames < schema::kMaxBadFrames) return;
  peer.cut_off_incarnation = links_[seat].incarnation;
  hooks_.on_misbehaved(seat, name(seat) + " sent " + std::to_string(peer.bad_frames) +
                                 " malformed frames, the last one: " + why + "; is it the same build?");
}

// Sends the reason to the sender, if it reads.
void Inbound::refuse(const std::string& id, const std::string& why) {
  const schema::SharedFrame frame = schema::encode_frame({}, schema::Refusal{self_.config.node, why}, pool_);
  try {
    if (router_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
      router_.send(message_of(frame), zmq::send_flags::dontwait);
  } catch (const zmq::error_t&) {  // the connection has closed
  }
}

void Inbound::report_unknown(const std::string& from, const std::string& why) {
  ++links_.unknown_senders;
  if (const std::optional<std::uint64_t> times = unknown_throttle_.happened())
    log_.warning("unknown-sender-refused", {{"from", from}, {"why", why}, {"times", *times}});
}

// --- hellos ---

void Inbound::on_hello(const std::string& id, Sender& sender, const schema::Hello& hello) {
  const std::string from = connections_->address(sender.descriptor);
  const auto turn_away = [&](const std::string& why) {
    report_unknown(from, why);
    refuse(id, why);
  };
  const schema::NodeConfig& config = self_.config;
  const std::optional<User> user = keyring_.find_user(sender.identity);
  if (user && !user->may_act_as(hello.node))
    return turn_away("it claims to be " + hello.node + ", but its key belongs to " + format_user(*user));
  if (!user) return connections_->close(sender.descriptor, Keyring::kKeyRevoked);
  if (hello.node == config.node)
    return turn_away("two nodes are called " + config.node + ": the one at " + config.self().host + ", and one at " +
                     from);
  const std::optional<Seat> known = config.nodes.listed(hello.node);
  if (!known)
    return turn_away("no peer line of " + config.node + " names " + hello.node + "; add that line to the tgd.conf of " +
                     config.node);
  const Seat seat = *known;
  if (const std::optional<std::string> why = incompatibility(hello)) {
    links_.note_problem(seat, *why);
    if (!std::exchange(sender.refused, true))
      log_.warning("peer-refused", {{"peer", name(seat)}, {"from", from}, {"why", *why}});
    return refuse(id, *why);
  }
  watch_connections();  // the hello's sender may have died while the hello was queued
  if (!senders_.contains(id)) return;
  if (is_duplicate(seat, id, hello)) return on_duplicate(id, seat, from, hello);
  adopt(id, sender, seat, hello);
}

// The reason why that node cannot be in one mesh with this one; no value if it can.
std::optional<std::string> Inbound::incompatibility(const schema::Hello& hello) const {
  const std::string& own = self_.config.node;
  if (hello.protocol != schema::kProtocolVersion || hello.build != self_.build)
    return "builds differ: " + hello.node + " runs " + hello.build + " (protocol " + std::to_string(hello.protocol) +
           "), " + own + " runs " + self_.build + " (protocol " + std::to_string(schema::kProtocolVersion) +
           "); a run needs one build on all nodes: install the same package, or the same sources, on both";
  return std::nullopt;
}

// From now on the connection is the peer's.
void Inbound::adopt(const std::string& id, Sender& sender, Seat seat, const schema::Hello& hello) {
  Peer& peer = peers_[seat];
  Link& link = links_[seat];
  if (!peer.sender.empty() && peer.sender != id) mark_down(seat);  // frames in transit on the old connection are lost
  sender.seat = seat;
  peer.sender = id;
  link.received_at = Clock::now();
  links_.note_source(seat, connections_->address(sender.descriptor));
  link.hello_received = hello.sequence;
  link.weight = hello.weight;
  if (hello.heard == self_.incarnation && hello.echo > peer.echo) {
    peer.echo = hello.echo;
    link.echoed_at = link.received_at.load();
  }
  const std::uint64_t before = link.incarnation.exchange(hello.incarnation);
  if (before != hello.incarnation) {
    peer.bad_frames = 0;
    if (before != 0) {
      link.rekeying = false;
      if (link.up.exchange(false)) hooks_.on_connection_changed(seat, false);
      hooks_.on_misbehaved(seat, name(seat) + " was restarted");
    }
  }
  hooks_.on_traffic(seat);
  peer.hears_us = hello.heard == self_.incarnation;
  if (!peer.hears_us && link.up)
    link.rekeying = hello.heard == 0 && before == hello.incarnation;  // announced by its take_links_down()
  update_link(seat);
}

// Decides from the state of both directions whether the link is up.
void Inbound::update_link(Seat seat) {
  Link& link = links_[seat];
  const bool up = peers_[seat].hears_us && link.connection != 0 &&
                  peers_[seat].cut_off_incarnation != link.incarnation && !links_.rebinding && !peer_will_rebind(seat);
  if (link.up.exchange(up) == up) return;
  if (up) links_.clear_problem(seat);
  log_.info(up ? "peer-connected" : "peer-disconnected", {{"peer", name(seat)}});
  hooks_.on_connection_changed(seat, up);
}

// Whether the hello comes from a second process with the peer's name; it has to wait while the first one answers.
bool Inbound::is_duplicate(Seat seat, const std::string& id, const schema::Hello& hello) const {
  const Peer& peer = peers_[seat];
  const Link& link = links_[seat];
  if (link.incarnation == 0 || link.incarnation == hello.incarnation || peer.sender == id) return false;
  // A process that has received our hellos is the one at the peer line's address; no other one receives them.
  if (hello.heard == self_.incarnation && hello.echo > link.hellos_before) return false;
  return link.connection != 0 && !peer.sender.empty() &&
         Clock::now() - link.received_at.load() < std::chrono::milliseconds(self_.config.peer_timeout_ms);
}

void Inbound::on_duplicate(const std::string& id, Seat seat, const std::string& from, const schema::Hello& hello) {
  // The first time it may be a restarted process whose predecessor's end has not been noticed yet.
  if (std::exchange(peers_[seat].duplicate, hello.incarnation) != hello.incarnation) return;
  const std::string& called = name(seat);
  const std::string others = connections_->address(senders_[peers_[seat].sender].descriptor);
  const std::string advice =
      "; are two nodes called " + called + "? If not, a peer line of another mesh points here: correct that line";
  links_.note_problem(
      seat, "another process called " + called + " connects from " + from + ", besides the one at " + others + advice);
  refuse(id, "another process called " + called + " is connected from " + others + advice);
}

}  // namespace tg::daemon
