#include "ctl/client.h"

#include <linux/tcp.h>  // has more of tcp_info than glibc's
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <zmq.hpp>

#include "ctl/port_probe.h"
#include "ctl/terminal/interrupt.h"
#include "kernels/base/now.h"
#include "schema/keys/keys.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLingerMs = 200;  // for a request that is not sent yet
constexpr int kProbeMs = 2000;  // between probes of a busy node
constexpr int kPollMs = 1000, kFirstPollMs = 200;
constexpr int kSilenceMs = 2 * kProbeMs + schema::kControlReplyMs;  // after this time without a reply the node is lost
constexpr int kReconnectMostMs = 1000;
constexpr int kMaxUnread = 8;  // replies queued here; the others wait at the node
// libzmq bounds a message's parts, not their number. No reply has more bytes than this before its last part.
constexpr std::uint64_t kMaxUnreadBytes = 2 * kMaxUnread * schema::kMaxControlBytes;
constexpr int kWatchMs = 50;  // between checks of that
// The node that has ended a connection which it had accepted has this long to accept another one, or to refuse it.
constexpr std::chrono::milliseconds kDropTime{schema::kControlReplyMs + kReconnectMostMs};
constexpr const char* kDropped =
    "it ended the connection that it had accepted, and accepts no other in time: is it busy, being restarted, or no "
    "control port (the mesh port + 1)? Ask again in a moment.";
// The time from a key file's change until every port is bound with the key in use: nodes check each second.
constexpr std::chrono::seconds kRotationTime{2};
constexpr std::chrono::seconds kRotationWindow{10};  // after a key file's change, in which refusals may be due to it
constexpr int kRotationPauseMs = 50;
constexpr std::uint64_t kUnreadable = 0;  // the id of a reply to a request that the node could not read
constexpr std::uint64_t kFirstId = 1;

// The bytes that the kernel has received on a connection, 0 where it does not count them (local sockets).
std::uint64_t received_bytes(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

// True for the path of a local socket.
bool is_local(const std::string& address) {
  return address.find('/') != std::string::npos && address.find("://") == std::string::npos;
}

// True for host:port; an IPv6 address has to be in brackets.
bool is_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || address.size() > schema::kMaxAddressBytes) return false;
  if (address.find_first_of("/ *@") != std::string::npos || !schema::is_printable(address)) return false;
  const std::string host = address.substr(0, colon);
  if (host.find_first_of("[]:") != std::string::npos && !(host.front() == '[' && schema::is_ipv6(host))) return false;
  const auto port = schema::parse_number<unsigned>(std::string_view(address).substr(colon + 1));
  return port && *port >= 1 && *port <= 65535;
}

struct KeysRead {
  std::string text;  // the file's
  schema::OperatorKeys keys;
};

Result<KeysRead> read_keys(const std::string& file) {
  if (file.empty()) return KeysRead{};
  Result<std::string> text = schema::read_key_file(file);
  if (!text) return text.error();
  Result<schema::OperatorKeys> keys = schema::parse_operator_keys(*text, file);
  if (!keys) return keys.error();
  return KeysRead{*std::move(text), *std::move(keys)};
}

bool changed_recently(const std::string& file) {
  struct stat status {};
  if (file.empty() || ::stat(file.c_str(), &status) != 0) return false;
  const std::chrono::system_clock::duration changed =
      std::chrono::seconds(status.st_ctim.tv_sec) + std::chrono::nanoseconds(status.st_ctim.tv_nsec);
  return std::chrono::abs(std::chrono::system_clock::now().time_since_epoch() - changed) < kRotationWindow;
}

std::string within(int ms) { return " within " + std::to_string(ms / 1000) + " s"; }

// Whether a request has the same effect if the node receives it twice.
bool is_idempotent(const schema::RequestBody& body) {
  const auto* start = std::get_if<schema::StartRequest>(&body);
  return (start == nullptr || start->dry_run) && !std::holds_alternative<schema::ResumeRequest>(body);
}

void set_key(zmq::socket_t& socket, int option, const schema::Key& key) {
  if (zmq_setsockopt(socket.handle(), option, key.data(), key.size()) != 0) throw zmq::error_t();
}

}  // namespace

struct Client::State {
  State(std::string node_address, std::string operator_file, KeysRead operator_keys)
      : address(std::move(node_address)),
        place(is_local(address) ? address : place_that_accepts(address)),
        key_file(std::move(operator_file)),
        key_text(std::move(operator_keys.text)),
        keys(std::move(operator_keys.keys)),
        next_id(std::uint64_t{std::random_device{}()} + kFirstId) {
    dial();
  }

  ~State() { end_events(); }

  // To be called before the monitor or the socket is closed: an unread event blocks libzmq's thread for ever.
  void end_events() {
    if (socket) zmq_socket_monitor(socket.handle(), nullptr, 0);
  }

  // Connects with the next of our keys, if there are any.
  void dial() {
    end_events();
    if (socket) socket.set(zmq::sockopt::linger, 0);  // queued requests are sent again
    socket = zmq::socket_t(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::rcvhwm, kMaxUnread);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(schema::kMaxControlBytes));
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMostMs);
    socket.set(zmq::sockopt::connect_timeout, schema::kControlReplyMs);
    socket.set(zmq::sockopt::handshake_ivl, schema::kControlReplyMs);
    socket.set(zmq::sockopt::ipv6, place.front() == '[');
    if (!keys.credentials.empty() && !is_local(address)) {
      const schema::OperatorKeys::Credentials& with = keys.credentials[tried % keys.credentials.size()];
      set_key(socket, ZMQ_CURVE_SERVERKEY, with.control);
      set_key(socket, ZMQ_CURVE_PUBLICKEY, with.own.public_key);
      set_key(socket, ZMQ_CURVE_SECRETKEY, with.own.secret);
    }
    ++tried;
    const std::string endpoint = "inproc://dial-" + std::to_string(++dials);
    constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                            ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    if (zmq_socket_monitor(socket.handle(), endpoint.c_str(), kEvents) != 0) throw zmq::error_t();
    monitor = zmq::socket_t(context, zmq::socket_type::pair);
    monitor.set(zmq::sockopt::linger, 0);
    monitor.connect(endpoint);
    socket.connect((is_local(address) ? "ipc://" : "tcp://") + place);
  }

  // True if the key file has changed.
  bool read_keys_again() {
    Result<KeysRead> now = read_keys(key_file);
    if (!now || now->text == key_text) return false;
    key_text = std::move(now->text);
    keys = std::move(now->keys);
    return true;
  }

  // During a rotation (there are several keys, or the file is new) the port may change its key between two tries, and
  // it does so after the file.
  bool try_next_key() {
    const bool all_tried = tried >= std::max<std::size_t>(keys.credentials.size(), 1);
    if (tried == 1) first_refused = Clock::now();
    const bool rotating = keys.credentials.size() > 1 || changed_recently(key_file);
    if (all_tried && (!rotating || Clock::now() - first_refused >= kRotationTime)) return false;
    if (all_tried) (void)sleep_unless_interrupted(kRotationPauseMs);
    dial();
    return true;
  }

  // Handles events of the connection. After a refusal the other keys are tried, and then the key file is read again,
  // because it may have changed since it was read or since the port accepted a key. The request is then sent again.
  void take_events(std::uint64_t id, const schema::RequestBody& body) {
    zmq::message_t event, endpoint;
    bool failed = false, cut = false;
    while (monitor.recv(event, zmq::recv_flags::dontwait) && monitor.recv(endpoint, zmq::recv_flags::dontwait)) {
      std::uint16_t what = 0;
      std::int32_t value = 0;
      if (event.size() != sizeof what + sizeof value) continue;
      std::memcpy(&what, event.data(), sizeof what);
      std::memcpy(&value, event.data<char>() + sizeof what, sizeof value);
      if (what == ZMQ_EVENT_CONNECTED) {
        descriptor = value;
        taken_bytes = 0;
        continue;
      }
      if (what == ZMQ_EVENT_DISCONNECTED) {
        if (accepted && !dropped_at) dropped_at = Clock::now();
        if (!first_dropped_at) first_dropped_at = dropped_at;
        continue;
      }
      const bool succeeded = what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
      cut = cut || accepted;
      accepted = accepted || succeeded;
      if (succeeded) {
        rotated = refused = false;
        dropped_at.reset();
        continue;
      }
      if (what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && value == EAGAIN) continue;  // a silence, which libzmq retries
      refused = refused || what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
      // Without keys, any other failure means that it is not a tgd; probe_port finds out more.
      const bool wants_key = value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH;
      failed = failed || wants_key || refused || !keys.credentials.empty();
    }
    if (cut && !is_idempotent(body)) {
      lost = true;
      return;
    }
    if (failed && (read_keys_again() || accepted)) {
      rotated = rotated || accepted;
      accepted = refused = false;
      tried = 0;
    }
    if (failed && !try_next_key()) {
      forbidden = true;
      return;
    }
    if (failed || cut) (void)send(id, body);
  }

  Error forbidden_error() const {
    const std::string node = "the node at " + address;
    if (rotated)
      return {ErrorKind::kForbidden,
              node +
                  " no longer accepts this key: it was rotated out, or its operator line was removed. The run is not " +
                  "affected; use a new key, and tgctl status shows it"};
    if (refused && keys.credentials.empty())
      return {ErrorKind::kForbidden, node +
                                         " does not let this machine in: neither a peer line nor control-allow there "
                                         "names its address, which the node's log has"};
    if (refused)
      return {ErrorKind::kForbidden, node +
                                         " does not know this key; list its operator line in the cluster key file of "
                                         "the nodes (tgctl keygen --help)"};
    if (keys.credentials.empty())
      return {ErrorKind::kForbidden,
              node +
                  " is not a tgd, or is one that requires a key: give --key FILE or TGCTL_KEY, or ask "
                  "its local socket (--address STATE-DIR/control.sock); " +
                  kPortHint};
    if (is_local(address)) return unreachable("");
    // A peer that sent nothing until the handshake's end has refused nothing.
    const PortProbe probe = probe_port(address);
    if (!probe.is_zeromq) return no_answer(within(schema::kControlReplyMs), probe);
    return {ErrorKind::kForbidden, node +
                                       " is not a tgd, or has another cluster key than this key file, or none; give "
                                       "the key file of its mesh (--key, TGCTL_KEY), and " +
                                       kPortHint};
  }

  Error no_answer(const std::string& why, const PortProbe& probe) const {
    return {ErrorKind::kUnreachable, "no tgd answers at " + address + why + ": " +
                                         (dropped_at && probe.is_zeromq ? std::string(kDropped) : probe.problem) +
                                         " Use --address or TGCTL_ADDRESS for another node"};
  }

  Error unreachable(const std::string& why) const {
    if (is_local(address))
      return {ErrorKind::kUnreachable, "no tgd answers at the local socket " + address + why + "; is it running?"};
    const PortProbe probe = probe_port(address);
    // A refusal says more than the silence after it. It may have been lost: a reset overtakes what was sent before it.
    const bool has_refused = probe.is_zeromq && (refused || rotated);
    return has_refused || (probe.wants_key && keys.credentials.empty()) ? forbidden_error() : no_answer(why, probe);
  }

  // The node has been silent for too long.
  Error silence_error() const { return unreachable(answered_before ? " any longer" : ""); }

  bool send(std::uint64_t id, const schema::RequestBody& body) {
    const std::string bytes = schema::encode_request({id, body});
    return socket.send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
  }

  // The next reply with any id; none at the deadline, on Ctrl-C, or if the node refuses the connection.
  std::optional<Result<schema::Reply>> receive(Clock::time_point deadline, std::uint64_t id,
                                               const schema::RequestBody& body) {
    while (!interrupted() && !forbidden && !lost && !flooded) {
      given_up = keep_waiting && !keep_waiting();
      if (given_up) break;
      zmq::pollitem_t items[] = {{socket.handle(), 0, ZMQ_POLLIN, 0}, {monitor.handle(), 0, ZMQ_POLLIN, 0}};
      const int left = remaining_ms(deadline);
      try {
        const int ready = zmq::poll(items, 2, std::chrono::milliseconds(std::min(left, kWatchMs)));
        flooded = received_bytes(descriptor) > taken_bytes + kMaxUnreadBytes;
        if (ready == 0 && left == 0) return std::nullopt;
        if (ready == 0) continue;
        if (items[1].revents != 0) take_events(id, body);
      } catch (const zmq::error_t& error) {
        if (error.num() == EINTR) continue;
        throw;
      }
      zmq::message_t message;
      if (!socket.recv(message, zmq::recv_flags::dontwait)) {
        if (left == 0) return std::nullopt;
        continue;
      }
      taken_bytes = received_bytes(descriptor);
      return schema::decode_reply({static_cast<const std::byte*>(message.data()), message.size()});
    }
    return std::nullopt;
  }

  Result<schema::ReplyBody> ask(const schema::RequestBody& body, int timeout_ms, bool probe,
                                const ProgressPoll* poll = nullptr);

  const std::string address, place, key_file;
  std::string key_text;  // contents of the file that the keys are from
  schema::OperatorKeys keys;
  zmq::context_t context;
  zmq::socket_t socket, monitor;
  Clock::time_point first_refused{};
  std::size_t dials = 0, tried = 0;  // tried: keys since the last one that was accepted
  bool accepted = false, refused = false, forbidden = false;
  bool rotated = false;                               // the key was accepted before, and refused since
  std::optional<Clock::time_point> dropped_at;        // when a connection ended that was accepted; none accepted since
  std::optional<Clock::time_point> first_dropped_at;  // since the request was sent
  bool answered_before = false;                       // there was a reply to any request
  int descriptor = -1;                                // the connection's
  std::uint64_t taken_bytes = 0;                      // received on it when the last message was read
  bool flooded = false;
  std::function<bool()> keep_waiting;
  bool given_up = false;
  bool lost = false;  // the connection was cut, perhaps with a request that must not be sent twice
  std::uint64_t next_id;
};

Result<schema::ReplyBody> Client::State::ask(const schema::RequestBody& body, int timeout_ms, bool probe,
                                             const ProgressPoll* poll) try {
  const std::uint64_t id = next_id++;
  lost = false;
  if (!send(id, body)) return unreachable("");
  // The port may be bound again meanwhile, and other keys be tried, which is not the node's silence.
  if (changed_recently(key_file)) timeout_ms += static_cast<int>(std::chrono::milliseconds(kRotationTime).count());
  Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  first_dropped_at.reset();
  Clock::time_point heard = Clock::now();
  const std::chrono::milliseconds probe_every(poll != nullptr ? kPollMs : kProbeMs);
  const schema::RequestBody question = poll != nullptr ? poll->request : schema::VersionRequest{};
  Clock::time_point next_probe = heard + (poll != nullptr ? std::chrono::milliseconds(kFirstPollMs) : probe_every);
  while (true) {
    std::optional<Result<schema::Reply>> reply = receive(probe ? std::min(deadline, next_probe) : deadline, id, body);
    if (interrupted() || given_up) return Error{ErrorKind::kFailed, "interrupted"};
    if (forbidden) return forbidden_error();
    if (flooded)
      return Error{ErrorKind::kCorrupt, "the program at " + address + " is not a tgd: its reply does not end"};
    if (lost)
      return Error{ErrorKind::kUnreachable, "the connection to the node at " + address +
                                                " was lost before it replied; tgctl list shows whether the run exists"};
    const Clock::time_point now = Clock::now();
    if (first_dropped_at) {  // the first alone: a port that accepts and ends each connection is waited for once
      deadline = std::max(deadline, *first_dropped_at + kDropTime);
      heard = std::max(heard, *first_dropped_at);
    }
    if (reply) {
      if (!reply->ok()) {
        return Error{ErrorKind::kCorrupt,
                     "the program at " + address + " is not a tgd of this version: " + reply->error().message};
      }
      heard = now;
      answered_before = true;
      const std::uint64_t answered = reply->value().id;
      schema::ReplyBody& answer = reply->value().body;
      if (answered == id || answered == kUnreadable) {
        if (const auto* error = std::get_if<Error>(&answer)) return *error;
        return std::move(answer);
      }
      if (poll != nullptr && answered > id && poll->on_reply(answer))
        deadline = now + std::chrono::milliseconds(timeout_ms);
    }
    // Replies to other requests do not extend the deadline.
    if (!probe && now >= deadline) return unreachable(within(timeout_ms));
    if (!probe) continue;
    if (now - heard >= std::chrono::milliseconds(kSilenceMs)) return silence_error();
    if (now >= deadline) {
      return Error{ErrorKind::kTimeout, "the node at " + address + " is alive but did not finish the request within " +
                                            std::to_string(timeout_ms / 1000) + " s; tgctl list shows the runs"};
    }
    if (now < next_probe) continue;
    next_probe = now + probe_every;
    if (!send(next_id++, question)) return silence_error();
  }
} catch (const zmq::error_t& error) {
  return Error{ErrorKind::kUnreachable, address + ": " + error.what()};
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

Result<Client> Client::connect(const std::string& given, const std::string& key_file) {
  const Result<std::string> found = given.empty() ? own_node() : given;
  if (!found) return found.error();
  const std::string& address = *found;
  if (std::string problem = schema::link_local_problem(address.substr(0, address.rfind(':'))); !problem.empty())
    return Error{ErrorKind::kUsage, std::move(problem)};
  if (!is_local(address) && !is_address(address)) {
    return Error{ErrorKind::kUsage,
                 std::string("\"") + schema::clip_text(address, 100) +
                     "\" is not an address of the form host:port, such as 127.0.0.1:7701 or [::1]:7701, and not the "
                     "path of a node's local socket"};
  }
  Result<KeysRead> keys = read_keys(key_file);
  if (!keys) return keys.error();
  try {
    return Client(std::make_unique<State>(address, key_file, *std::move(keys)));
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kUnreachable, address + " cannot be connected to: " + error.what()};
  }
}

Result<schema::ReplyBody> Client::ask(const schema::RequestBody& body) {
  return state_->ask(body, schema::kControlReplyMs, false);
}

Result<schema::ReplyBody> Client::ask_with_probes(const schema::RequestBody& body, int timeout_ms,
                                                  const ProgressPoll* poll) {
  return state_->ask(body, timeout_ms, true, poll);
}

void Client::set_wait_callback(std::function<bool()> keep_waiting) { state_->keep_waiting = std::move(keep_waiting); }

const std::string& Client::address() const { return state_->address; }

}  // namespace tg::ctl
