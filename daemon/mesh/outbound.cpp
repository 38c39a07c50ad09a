#include "daemon/mesh/outbound.h"

#include "daemon/access/dial.h"
#include "daemon/mesh/mesh_sockets.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kHelloMs = 1000;           // to a connected peer
constexpr std::uint64_t kHelloConnectingMs = 200;  // until both directions work
constexpr std::uint64_t kRedialMs = 1000;          // between two dials of one peer, once each key was tried

}  // namespace

Outbound::Outbound(const MeshSelf& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
                   schema::FramePool& pool, Log& log)
    : self_(self),
      links_(links),
      context_(context),
      keyring_(keyring),
      pool_(pool),
      log_(log),
      ways_(self.config.peers.size()) {}

void Outbound::dial_all() {
  for (const Seat peer : ways_.places())
    if (peer != self_.config.seat()) dial(peer, 0);
}

// Replaces the connection to the peer by a new one, with the next of our keys. Where the port had the key in use and
// was cut off, it has the other one by now.
void Outbound::dial(Seat peer, std::uint64_t now_ms) {
  Way& way = ways_[peer];
  const schema::PeerAddress& address = self_.config.peers[peer];
  way.dialled_ms = now_ms;
  const std::uint64_t dial = ++links_[peer].dials;  // first: what comes of the connection before counts no more
  links_[peer].redial = false;
  links_[peer].connection = 0;
  std::optional<Introduction> introduction;
  if (keyring_.has_keys()) {
    if (way.tried == 0) way.cluster = 0;
    Keyring::Ends ends = keyring_.to_node(way.cluster, address.name);
    if (way.tried == 0 && Keyring::mark(ends.port) == links_[peer].port_key)
      ends = keyring_.to_node(++way.cluster, address.name);
    ++way.tried;
    introduction = Introduction{ends.own, ends.port};
    links_[peer].port_key = Keyring::mark(ends.port);
    ++way.cluster;
  }
  SocketOptions options = mesh_options(self_.config);
  options.ipv6 = takes_ipv6(address.host, self_.config.listen);
  options.io_threads = self_.io_threads.of_peers[peer];
  Dial made = daemon::dial(context_, options, introduction, address.mesh_endpoint());
  Dial::end_events(way.dealer);
  way.dealer = std::move(made.dealer);  // closes the previous one
  const std::lock_guard lock(mutex_);
  monitors_.push_back({peer, dial, std::move(made.monitor)});
}

std::vector<Outbound::Watched> Outbound::take_monitors() {
  const std::lock_guard lock(mutex_);
  return std::exchange(monitors_, {});
}

bool Outbound::put_on_wire(Seat peer, const schema::SharedFrame& frame) {
  zmq::message_t message = message_of(frame);
  const std::size_t size = message.size();
  try {
    if (!ways_[peer].dealer.send(message, zmq::send_flags::dontwait)) return false;
  } catch (const zmq::error_t& error) {
    log_.warning("send-failed", {{"peer", self_.config.peers[peer].name}, {"error", error.what()}});
    return false;
  }
  links_[peer].sent_bytes += wire_bytes(size);
  return true;
}

// The first frame of a connection is a hello: without one its other end does not know whose the frames are.
bool Outbound::push(Seat peer, const schema::SharedFrame& frame) {
  if (ways_[peer].greeted_connection != links_[peer].connection && !say_hello(peer)) return false;
  return put_on_wire(peer, frame);
}

bool Outbound::say_hello(Seat peer) {
  Link& link = links_[peer];
  const std::uint64_t connection = link.connection, heard = links_.between_keys ? 0 : link.incarnation.load();
  const schema::Hello hello{schema::kProtocolVersion,
                            self_.build,
                            self_.config.node,
                            self_.incarnation,
                            self_.names_hash,
                            heard,
                            link.said + 1,
                            link.heard_hello,
                            self_.names,
                            static_cast<std::uint16_t>(self_.config.weight)};
  if (!put_on_wire(peer, schema::encode_frame({}, hello, pool_))) return false;
  ++link.said;
  ways_[peer].greeted = heard;
  ways_[peer].greeted_connection = connection;
  return true;
}

void Outbound::flush(Seat peer) {
  std::deque<schema::SharedFrame>& waiting = ways_[peer].waiting;
  while (!waiting.empty() && push(peer, waiting.front())) waiting.pop_front();
}

// Reads what the peer's port says to a connection that it refuses.
void Outbound::take_refusals(Seat peer) {
  zmq::message_t message;
  while (ways_[peer].dealer.recv(message, zmq::recv_flags::dontwait)) {
    const Result<schema::Frame> frame = schema::decode_frame({message.data<std::byte>(), message.size()});
    const auto* refusal = frame.ok() ? std::get_if<schema::Refusal>(&frame->body) : nullptr;
    if (refusal != nullptr)
      links_.note_refusal(peer, refusal->node + " refuses " + self_.config.node + ": " + refusal->message);
  }
}

std::optional<Seat> Outbound::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  std::optional<Seat> full;
  for (const Seat peer : to) {
    flush(peer);
    std::deque<schema::SharedFrame>& waiting = ways_[peer].waiting;
    if (waiting.empty() && push(peer, frame)) continue;
    if (waiting.size() >= kMaxWaitingFrames)
      full = peer;
    else
      waiting.push_back(frame);
  }
  return full;
}

void Outbound::tick(std::uint64_t now_ms) {
  for (const Seat peer : ways_.places()) {
    if (peer == self_.config.seat()) continue;
    Link& link = links_[peer];
    Way& way = ways_[peer];
    try {
      take_refusals(peer);
      if (link.connection != 0) way.tried = 0;
      const bool has_another_key = keyring_.has_keys() && way.tried < keyring_.clusters();
      if (link.redial && (has_another_key || now_ms - way.dialled_ms >= kRedialMs)) dial(peer, now_ms);
    } catch (const zmq::error_t& error) {
      log_.warning("dial-failed", {{"peer", self_.config.peers[peer].name}, {"error", error.what()}});
      way.dialled_ms = now_ms;
      link.redial = true;
    }
    const std::uint64_t period = link.up ? kHelloMs : kHelloConnectingMs;
    const bool news = way.greeted != link.incarnation || way.greeted_connection != link.connection;
    // Without a connection there is nobody to greet: the next tick tries again.
    if (news || now_ms - way.last_hello_ms >= period) {
      say_hello(peer);
      way.last_hello_ms = now_ms;
    }
    flush(peer);
  }
}

void Outbound::forget_waiting() {
  for (Way& way : ways_) way.waiting.clear();
}

void Outbound::forget_waiting(Seat peer) { ways_[peer].waiting.clear(); }

void Outbound::end_events() {
  for (Way& way : ways_) Dial::end_events(way.dealer);
}

void Outbound::close(int linger_ms) {
  for (Way& way : ways_) {
    if (!way.dealer) continue;
    way.dealer.set(zmq::sockopt::linger, linger_ms);
    way.dealer.close();
  }
}

}  // namespace tg::daemon
