#include "daemon/mesh/outbound.h"

#include <algorithm>

#include "daemon/access/connection.h"
#include "daemon/mesh/mesh_sockets.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kHelloMs = 1000;           // to a connected peer
constexpr std::uint64_t kHelloConnectingMs = 200;  // until both directions work
constexpr std::uint64_t kRedialMs = 1000;          // between two dials of one peer, once each key has been tried

}  // namespace

Outbound::Outbound(const MeshIdentity& self, LinkTable& links, zmq::context_t& context, Keyring& keyring,
                   schema::FramePool& pool, Log& log)
    : self_(self),
      links_(links),
      context_(context),
      keyring_(keyring),
      pool_(pool),
      log_(log),
      peers_(self.config.nodes.kMaxNodes) {}

void Outbound::dial_all() {
  for (const Seat peer : self_.config.nodes.places())
    if (peer != self_.config.seat()) follow_line(peer, 0);
}

// Dials the next address of the peer's name, if it has another one; `again`: even if it has not.
void Outbound::dial_next(Seat peer, std::uint64_t now_ms, bool again) {
  std::string next = links_.names().next_address(self_.config.nodes.line(peer).host, peers_[peer].host);
  if (next == peers_[peer].host && !again) return;
  peers_[peer].host = std::move(next);
  dial(peer, now_ms);
}

// A peer line may have changed, or gone: then there is no connection, and false.
bool Outbound::follow_line(Seat peer, std::uint64_t now_ms) {
  Peer& out = peers_[peer];
  const schema::PeerAddress line = self_.config.nodes.line(peer);
  const std::string place = self_.config.nodes.is_listed(peer) ? schema::host_and_port(line.host, line.port) : "";
  if (place == out.line) return !place.empty();
  if (!out.line.empty()) {  // the other half finds the link without a connection
    ++links_[peer].dials;
    links_[peer].connection = 0;
    links_[peer].hellos_before = links_[peer].hello_sent.load();
    Connection::stop_events(out.dealer);
    out.dealer = {};
    out.queue.clear();
  }
  out.line = place;
  out.host.clear();
  if (!place.empty()) dial_next(peer, now_ms, false);
  return !place.empty();
}

// Replaces the connection to the peer by a new one, with the next of our keys. A port that had the current key and was
// cut has the other key by now.
void Outbound::dial(Seat peer, std::uint64_t now_ms) {
  Peer& out = peers_[peer];
  const schema::PeerAddress address = self_.config.nodes.line(peer);
  out.dialled_ms = now_ms;
  const std::uint64_t dial = ++links_[peer].dials;  // first, so that events of the previous connection are ignored
  links_[peer].redial = false;
  links_[peer].connection = 0;
  std::optional<Credentials> credentials;
  if (keyring_.has_keys()) {
    if (out.attempts == 0) out.next_key = 0;
    Keyring::ConnectionKeys ends = keyring_.to_node(out.next_key, address.name);
    if (out.attempts == 0 && Keyring::fingerprint(ends.port) == links_[peer].port_key)
      ends = keyring_.to_node(++out.next_key, address.name);
    ++out.attempts;
    credentials = Credentials{ends.own, ends.port};
    links_[peer].port_key = Keyring::fingerprint(ends.port);
    ++out.next_key;
  }
  SocketOptions options = mesh_options(self_.config);
  options.ipv6 = out.host.find(':') != std::string::npos;
  Connection made = daemon::dial(context_, options, credentials, "tcp://" + host_and_port(out.host, address.port));
  Connection::stop_events(out.dealer);
  out.dealer = std::move(made.dealer);  // closes the previous one
  const std::lock_guard lock(mutex_);
  monitors_.push_back({peer, dial, std::move(made.monitor)});
}

std::vector<Outbound::MonitoredConnection> Outbound::take_monitors() {
  const std::lock_guard lock(mutex_);
  return std::exchange(monitors_, {});
}

bool Outbound::write_frame(Seat peer, const schema::SharedFrame& frame) {
  if (!peers_[peer].dealer) return false;
  zmq::message_t message = message_of(frame);
  const std::size_t size = message.size();
  try {
    if (!peers_[peer].dealer.send(message, zmq::send_flags::dontwait)) return false;
  } catch (const zmq::error_t& error) {
    log_.warning("send-failed", {{"peer", self_.config.nodes[peer]}, {"error", error.what()}});
    return false;
  }
  links_[peer].sent_bytes += wire_bytes(size);
  return true;
}

// The first frame of a connection is a hello, which tells the peer whose frames follow.
bool Outbound::send_frame(Seat peer, const schema::SharedFrame& frame) {
  if (peers_[peer].hello_connection != links_[peer].connection && !send_hello(peer)) return false;
  return write_frame(peer, frame);
}

bool Outbound::send_hello(Seat peer) {
  Link& link = links_[peer];
  const std::uint64_t connection = link.connection, heard = links_.rebinding ? 0 : link.incarnation.load();
  const schema::Hello hello{schema::kProtocolVersion,
                            self_.build,
                            self_.config.node,
                            self_.incarnation,
                            heard,
                            link.hello_sent + 1,
                            link.hello_received,
                            static_cast<std::uint16_t>(self_.config.weight)};
  if (!write_frame(peer, schema::encode_frame({}, hello, pool_))) return false;
  ++link.hello_sent;
  peers_[peer].hello_heard = heard;
  peers_[peer].hello_connection = connection;
  return true;
}

void Outbound::flush(Seat peer) {
  std::deque<schema::SharedFrame>& queue = peers_[peer].queue;
  while (!queue.empty() && send_frame(peer, queue.front())) queue.pop_front();
}

// Reads the refusals that the peer's port has sent on our connection.
void Outbound::read_refusals(Seat peer) {
  zmq::message_t message;
  while (peers_[peer].dealer.recv(message, zmq::recv_flags::dontwait)) {
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
    std::deque<schema::SharedFrame>& queue = peers_[peer].queue;
    if (queue.empty() && send_frame(peer, frame)) continue;
    if (queue.size() >= kMaxQueuedFrames)
      full = peer;
    else
      queue.push_back(frame);
  }
  return full;
}

void Outbound::tick(std::uint64_t now_ms) {
  for (const Seat peer : self_.config.nodes.all()) {
    if (peer == self_.config.seat()) continue;
    Link& link = links_[peer];
    Peer& out = peers_[peer];
    try {
      if (!follow_line(peer, now_ms)) continue;
      if (out.dealer) read_refusals(peer);
      if (link.connection != 0) {
        out.attempts = 0;
        out.connected_ms = now_ms;
      }
      const bool has_untried_key = keyring_.has_keys() && out.attempts < keyring_.cluster_count();
      const std::uint64_t waited_ms = now_ms - std::max(out.dialled_ms, out.connected_ms);
      if (link.redial && has_untried_key)
        dial(peer, now_ms);
      else if (link.redial ? now_ms - out.dialled_ms >= kRedialMs : !out.dealer || waited_ms >= kNextAddressMs)
        dial_next(peer, now_ms, link.redial);
    } catch (const zmq::error_t& error) {
      log_.warning("dial-failed", {{"peer", self_.config.nodes[peer]}, {"error", error.what()}});
      out.dialled_ms = now_ms;
      link.redial = true;
    }
    const std::uint64_t period = link.up ? kHelloMs : kHelloConnectingMs;
    const bool news = out.hello_heard != link.incarnation || out.hello_connection != link.connection;
    // Without a connection nothing is sent, and the next tick retries.
    if (news || now_ms - out.last_hello_ms >= period) {
      send_hello(peer);
      out.last_hello_ms = now_ms;
    }
    flush(peer);
  }
}

void Outbound::drop_queued() {
  for (Peer& out : peers_) out.queue.clear();
}

void Outbound::drop_queued(Seat peer) { peers_[peer].queue.clear(); }

void Outbound::stop_events() {
  for (Peer& out : peers_) Connection::stop_events(out.dealer);
}

void Outbound::close(int linger_ms) {
  for (Peer& out : peers_) {
    if (!out.dealer) continue;
    out.dealer.set(zmq::sockopt::linger, linger_ms);
    out.dealer.close();
  }
}

}  // namespace tg::daemon
