#include "daemon/mesh/inbound.h"

#include <algorithm>

#include "daemon/access/dial.h"
#include "daemon/mesh/mesh_sockets.h"
#include "engine/resources/descriptors.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr int kFramesPerTurn = 64;                    // then the thread looks around
constexpr std::chrono::milliseconds kPoll{50};        // how soon the thread sees that it should stop
constexpr std::chrono::milliseconds kWatch{10};       // how soon it sees a broken connection while frames come
constexpr std::chrono::milliseconds kTick{250};       // links that only look up
constexpr std::chrono::milliseconds kMaxPause{2000};  // between two of them, else this process stood still
// From one node's port with a new key to all nodes': each looks at its file every second.
constexpr std::chrono::milliseconds kMaxRebind{3000};
constexpr std::uint64_t kMaxSilenceMs = 30'000;  // of a connection, at least; every node says hello each second
constexpr std::size_t kMaxConnections = 4 * schema::kMaxMembers;

}  // namespace

Inbound::Inbound(const MeshSelf& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
                 schema::FramePool& pool, Log& log, MeshHooks hooks, Outbound& outbound)
    : self_(self),
      links_(links),
      context_(context),
      keyring_(keyring),
      pool_(pool),
      log_(log),
      hooks_(std::move(hooks)),
      outbound_(outbound),
      doorkeeper_(context, "mesh", keyring, Networks(self.config.hosts()), log),
      peers_(self.config.peers.size()) {
  for (const Seat seat : peers_.places()) seat_of_[name(seat)] = seat;
}

Status Inbound::bind() {
  const schema::NodeConfig& config = self_.config;
  doorkeeper_.start();
  router_ = zmq::socket_t(context_, zmq::socket_type::router);
  SocketOptions options = mesh_options(config);
  options.ipv6 = schema::is_ipv6(config.listen);
  options.io_threads = 1;
  set_socket_options(router_, options);
  if (keyring_.has_keys()) bound_ = keyring_.own(0);
  doorkeeper_.guard(router_, bound_);
  const std::chrono::milliseconds most_silence(std::max<std::uint64_t>(kMaxSilenceMs, 3 * config.peer_timeout_ms));
  connections_ = std::make_unique<Connections>(
      context_, router_,
      ConnectionLimits{
          std::min(kMaxConnections, schema::connections_of(engine::allowed_descriptors(), config.peers.size())),
          most_silence, schema::kMaxFrameBytes},
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
  while (router_.get(zmq::sockopt::rcvmore)) {  // a frame is one part; more is malformed and read to its end
    if (!router_.recv(*body, zmq::recv_flags::none)) break;
    ++parts;
  }
  if (parts == 1)
    on_message(id.to_string(), std::move(body));
  else if (Sender* sender = sender_of(id.to_string(), *body))
    on_bad_frame(*sender, "a message of " + std::to_string(parts) + " parts");
  return true;
}

// --- our connections to the peers, and theirs to us ---

void Inbound::take_monitors() {
  for (Outbound::Watched& one : outbound_.take_monitors()) {
    peers_[one.peer].monitor = std::move(one.monitor);
    peers_[one.peer].dial = one.dial;
  }
}

void Inbound::watch_connections() {
  take_monitors();
  for (const Seat peer : peers_.places())
    if (peers_[peer].monitor) watch_connection(peer);
  connections_->take_events();
  if (const auto now = Clock::now(); now - counted_ >= kConnectionTick) {
    counted_ = now;
    connections_->tick(now);
  }
  for (auto at = senders_.begin(); at != senders_.end();) {
    if (connections_->open(at->second.descriptor)) {
      ++at;
      continue;
    }
    if (const std::optional<Seat> seat = at->second.seat; seat && peers_[*seat].sender == at->first) {
      peers_[*seat].sender.clear();
      peers_[*seat].hears_us = false;
      lost(*seat);
    }
    at = senders_.erase(at);
  }
}

// Our connection to the peer: the one that our frames go out on.
void Inbound::watch_connection(Seat seat) {
  Peer& peer = peers_[seat];
  Link& link = links_[seat];
  while (const std::optional<DialEvent> event = next_event(peer.monitor)) {
    if (peer.dial != link.dials) continue;  // dialled anew meanwhile: the new connection has done nothing
    if (*event == DialEvent::kConnected) {
      link.connection = ++peer.connections;
      link.redial = false;  // libzmq has tried again by itself
      link.echo_at = Clock::now();
      // The peer's next hello may be a second away. A machine that was switched off is silent for longer.
      if (!link.up && Clock::now() - link.heard_at.load() < kMaxLinkSilence) settle(seat);
      continue;
    }
    link.connection = 0;
    lost(seat);
    // Of two cluster keys libzmq would try the one that the port had.
    if (*event == DialEvent::kDisconnected && keyring_.has_keys() && keyring_.clusters() > 1) link.redial = true;
    if (*event == DialEvent::kDisconnected) continue;
    link.redial = true;
    const schema::PeerAddress& address = self_.config.peers[seat];
    const bool changes = key_changes(seat);
    const ClosedDoor door{.place = schema::host_and_port(address.host, address.port),
                          .peer = name(seat),
                          .own = self_.config.node,
                          .has_keys = keyring_.has_keys()};
    links_.note_problem(
        seat, changes ? name(seat) + " or " + door.own + " is changing its cluster key" : why_closed(*event, door),
        changes || *event == DialEvent::kSilent);
  }
}

// Frames may be lost: even if the connection comes back, the view cannot go on, and the next one makes it good.
void Inbound::lost(Seat peer) {
  if (!links_[peer].up) return;
  // As long as the file holds both keys of a rotation it may be that.
  links_[peer].rekeys = key_changes(peer) || (keyring_.has_keys() && keyring_.clusters() > 1);
  if (!links_[peer].up.exchange(false)) return;
  log_.warning("connection-lost", {{"peer", name(peer)}});
  hooks_.connection(peer, false);
}

void Inbound::tick(Clock::time_point now) {
  end_gone_keys();
  if (!prepares_ && has_another_key()) bind_keys_of_now();
  // Who stood still himself has heard nobody, and may find all that was sent before him.
  if (now - std::exchange(ticked_, now) > kMaxPause) {
    for (const Seat seat : peers_.places()) links_[seat].heard_at = links_[seat].echo_at = now;
    return;
  }
  const auto most = most_silence();
  for (const Seat seat : peers_.places()) {
    const Link& link = links_[seat];
    // A hello that was not said has no echo.
    const bool mute = now - link.heard_at.load() >= most,
               deaf = now - link.echo_at.load() >= most && link.said >= peers_[seat].echo + 2;
    if (!link.up || (!mute && !deaf)) continue;
    links_.note_problem(seat,
                        mute ? "nothing comes from " + name(seat) + " over its mesh connection"
                             : "nothing arrives at the mesh port of " + name(seat),
                        true);
    lost(seat);
    links_[seat].redial = true;
  }
}

// A link that is dialled anew loses frames, and costs a run a view change. So during a run it may be silent for as long
// as a member.
std::chrono::milliseconds Inbound::most_silence() const {
  const std::chrono::milliseconds peer_timeout(self_.config.peer_timeout_ms);
  return in_run_ ? std::max(peer_timeout, kMaxLinkSilence) : kMaxLinkSilence;
}

void Inbound::end_gone_keys() {
  for (const auto& [id, sender] : senders_)
    if (!keyring_.user(sender.identity)) connections_->end(sender.descriptor, Keyring::kKeyGone);
}

bool Inbound::has_another_key() const {
  if (!keyring_.has_keys()) return false;
  const std::lock_guard lock(bound_mutex_);
  return keyring_.own(0).public_key != bound_.public_key;
}

// Before they are cut: nobody begins what they could not carry to its end. The peers learn it from our hellos.
void Inbound::leave_links() {
  links_.between_keys = true;
  for (const Seat seat : peers_.places()) {
    if (links_[seat].up) links_[seat].rekeys = true;
    if (!links_[seat].up.exchange(false)) continue;
    links_.note_problem(seat, "the mesh port of " + self_.config.node + " is being bound with the new cluster key",
                        true);
    hooks_.connection(seat, false);
  }
}

// A rotation is going on, or we had dialled before it: other keys are tried before anybody is told of a wrong one.
bool Inbound::key_changes(Seat peer) const {
  if (!keyring_.has_keys()) return false;
  return Clock::now() - rebound_ < kMaxRebind || has_another_key() ||
         links_[peer].port_key != Keyring::mark(keyring_.node(0, name(peer)));
}

// Our port has its new key, and the peer's has the one before: the link will be cut once more, unless nobody has given
// the peer the new key file. A run does not wait for that.
bool Inbound::binds_anew(Seat peer) const {
  return !in_run_ && keyring_.has_keys() && Clock::now() - rebound_ < kMaxRebind && !links_[peer].up &&
         links_[peer].port_key != Keyring::mark(keyring_.node(0, name(peer)));
}

void Inbound::bind_keys_of_now() {
  leave_links();
  const schema::KeyPair own = keyring_.own(0);
  if (!doorkeeper_.rebind(router_, own)) return;
  const std::lock_guard lock(bound_mutex_);
  bound_ = own;
  rebound_ = Clock::now();
  links_.between_keys = false;
}

// --- frames ---

// What is known of a connection. Null: it has gone already, or is none of ours.
Inbound::Sender* Inbound::sender_of(const std::string& id, zmq::message_t& body) {
  if (const auto known = senders_.find(id); known != senders_.end()) return &known->second;
  const int descriptor = Connections::descriptor(body);
  connections_->take_events();
  if (!connections_->open(descriptor)) return nullptr;
  std::string identity;
  try {
    identity = body.gets("User-Id");
  } catch (const zmq::error_t&) {  // it has none: no doorkeeper let it in
  }
  if (!keyring_.user(identity)) {
    connections_->end(descriptor, identity.empty() ? "nobody let it in" : Keyring::kKeyGone);
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
  connections_->spoke(sender->descriptor);
  if (const auto* hello = std::get_if<schema::Hello>(&frame->body)) return on_hello(id, *sender, *hello);
  if (!sender->seat || peers_[*sender->seat].sender != id) return;  // no valid hello yet, or a connection of before
  const Seat seat = *sender->seat;
  if (peers_[seat].cut_off_incarnation == links_[seat].incarnation) return;
  links_[seat].heard_at = Clock::now();
  hooks_.heard(seat);
  hooks_.frame(seat, std::move(frame).value(), std::move(message));
}

void Inbound::on_bad_frame(Sender& sender, const std::string& why) {
  const std::string address = connections_->address(sender.descriptor);
  if (!sender.seat) {
    stranger(address, "its first frame cannot be read: " + why);
    return connections_->end(sender.descriptor, "no hello");
  }
  const Seat seat = *sender.seat;
  Peer& peer = peers_[seat];
  ++peer.bad_frames;
  ++links_.malformed;
  if (peer.bad_frames > schema::kMaxBadFrames) return;
  log_.warning("frame-refused", {{"peer", name(seat)}, {"from", address}, {"why", why}, {"count", peer.bad_frames}});
  if (peer.bad_frames < schema::kMaxBadFrames) return;
  peer.cut_off_incarnation = links_[seat].incarnation;
  hooks_.misbehaved(seat, name(seat) + " sent " + std::to_string(peer.bad_frames) +
                              " malformed frames, the last one: " + why + "; is it the same build?");
}

// Tells whoever is at the other end; a sender that takes nothing misses it.
void Inbound::refuse(const std::string& id, const std::string& why) {
  const schema::SharedFrame frame = schema::encode_frame({}, schema::Refusal{self_.config.node, why}, pool_);
  try {
    if (router_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
      router_.send(message_of(frame), zmq::send_flags::dontwait);
  } catch (const zmq::error_t&) {  // it has gone
  }
}

void Inbound::stranger(const std::string& from, const std::string& why) {
  ++links_.strangers;
  if (const std::optional<std::uint64_t> times = strangers_.happened())
    log_.warning("stranger-refused", {{"from", from}, {"why", why}, {"times", *times}});
}

// --- hellos ---

void Inbound::on_hello(const std::string& id, Sender& sender, const schema::Hello& hello) {
  const std::string from = connections_->address(sender.descriptor);
  const auto turn_away = [&](const std::string& why) {
    stranger(from, why);
    refuse(id, why);
  };
  const schema::NodeConfig& config = self_.config;
  const std::optional<User> user = keyring_.user(sender.identity);
  if (user && !user->may_be(hello.node))
    return turn_away("it says that it is " + hello.node + ", but its key is of " + format_user(*user));
  if (!user) return connections_->end(sender.descriptor, Keyring::kKeyGone);
  if (hello.node == config.node)
    return turn_away("two nodes are called " + config.node + ": the one at " + config.self().host + ", and one at " +
                     from);
  const auto known = seat_of_.find(hello.node);
  if (known == seat_of_.end())
    return turn_away("no peer line of " + config.node + " names " + hello.node +
                     "; give every node the same peer lines");
  const Seat seat = known->second;
  if (const std::optional<std::string> why = foreign(hello)) {
    links_.note_problem(seat, *why);
    return refuse(id, *why);
  }
  watch_connections();  // a hello may have waited in the queue while its sender died
  if (!senders_.contains(id)) return;
  if (is_rival(seat, id, hello)) return on_rival(id, seat, from, hello);
  join(id, sender, seat, hello);
}

// Why a node of this name cannot be of one mesh with us, if it cannot.
std::optional<std::string> Inbound::foreign(const schema::Hello& hello) const {
  const std::string& own = self_.config.node;
  if (hello.protocol != schema::kProtocolVersion || hello.build != self_.build)
    return "builds differ: " + hello.node + " runs " + hello.build + " (protocol " + std::to_string(hello.protocol) +
           "), " + own + " runs " + self_.build + " (protocol " + std::to_string(schema::kProtocolVersion) +
           "); a run needs one build on all nodes: install the same package, or the same sources, on both";
  if (hello.names_hash != self_.names_hash)
    return "peer lines differ: " + hello.node + " knows " + hello.names + ", " + own + " knows " + self_.names +
           "; give every node the same set of peer names";
  return std::nullopt;
}

// The connection is the peer's from now on.
void Inbound::join(const std::string& id, Sender& sender, Seat seat, const schema::Hello& hello) {
  Peer& peer = peers_[seat];
  Link& link = links_[seat];
  if (!peer.sender.empty() && peer.sender != id) lost(seat);  // with what was on its way over the connection of before
  sender.seat = seat;
  peer.sender = id;
  link.heard_at = Clock::now();
  link.heard_hello = hello.sequence;
  link.weight = hello.weight;
  if (hello.heard == self_.incarnation && hello.echo > peer.echo) {
    peer.echo = hello.echo;
    link.echo_at = link.heard_at.load();
  }
  const std::uint64_t before = link.incarnation.exchange(hello.incarnation);
  if (before != hello.incarnation) {
    peer.bad_frames = 0;
    if (before != 0) {
      link.rekeys = false;
      if (link.up.exchange(false)) hooks_.connection(seat, false);
      hooks_.misbehaved(seat, name(seat) + " was restarted");
    }
  }
  hooks_.heard(seat);
  peer.hears_us = hello.heard == self_.incarnation;
  if (!peer.hears_us && link.up)
    link.rekeys = hello.heard == 0 && before == hello.incarnation;  // as its leave_links() says
  settle(seat);
}

// Whether the link is up, by what is known of both its directions.
void Inbound::settle(Seat seat) {
  Link& link = links_[seat];
  const bool up = peers_[seat].hears_us && link.connection != 0 &&
                  peers_[seat].cut_off_incarnation != link.incarnation && !links_.between_keys && !binds_anew(seat);
  if (link.up.exchange(up) == up) return;
  if (up) links_.forget_problem(seat);
  log_.info(up ? "peer-connected" : "peer-disconnected", {{"peer", name(seat)}});
  hooks_.connection(seat, up);
}

// Another process than the one that has this peer's place, while that one answers: it has to wait.
bool Inbound::is_rival(Seat seat, const std::string& id, const schema::Hello& hello) const {
  const Peer& peer = peers_[seat];
  const Link& link = links_[seat];
  if (link.incarnation == 0 || link.incarnation == hello.incarnation || peer.sender == id) return false;
  // Who has heard us is the one at the address of the peer line, and no other can be.
  if (hello.heard == self_.incarnation) return false;
  return link.connection != 0 && !peer.sender.empty() &&
         Clock::now() - link.heard_at.load() < std::chrono::milliseconds(self_.config.peer_timeout_ms);
}

void Inbound::on_rival(const std::string& id, Seat seat, const std::string& from, const schema::Hello& hello) {
  // The first time it may be a restarted process, and the end of the one before not seen yet.
  if (std::exchange(peers_[seat].rival, hello.incarnation) != hello.incarnation) return;
  const std::string& called = name(seat);
  const std::string others = connections_->address(senders_[peers_[seat].sender].descriptor);
  const std::string advice =
      "; are two nodes called " + called + "? If not, a peer line of another mesh leads here: correct that line";
  links_.note_problem(
      seat, "another process called " + called + " calls from " + from + ", beside the one at " + others + advice);
  refuse(id, "another process called " + called + " is connected from " + others + advice);
}

}  // namespace tg::daemon
