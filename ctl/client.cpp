#include "ctl/client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <random>
#include <utility>
#include <zmq.hpp>

#include "ctl/diagnosis.h"
#include "ctl/terminal/interrupt.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLingerMs = 200;  // a request that could not be sent by then never will be
constexpr int kProbeMs = 2000;  // between signs of life asked of a busy node
constexpr int kMeanwhileMs = 1000;
constexpr int kSilenceMs = 2 * kProbeMs + schema::kControlReplyMs;  // without any, the node is gone
constexpr int kReconnectMostMs = 1000;
constexpr std::uint64_t kUnreadable = 0;  // the id of a reply to a request that the node could not read
constexpr std::uint64_t kFirstId = 1;

int remaining_ms(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

// host:port; an IPv6 address stands in brackets.
bool is_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || address.size() > schema::kMostAddressBytes) return false;
  if (address.find_first_of("/ *@") != std::string::npos || !schema::is_printable(address)) return false;
  const std::string host = address.substr(0, colon);
  if (host.find_first_of("[]:") != std::string::npos && !(host.front() == '[' && schema::is_ipv6(host))) return false;
  unsigned port = 0;
  const char* const end = address.data() + address.size();
  const auto [stop, code] = std::from_chars(address.data() + colon + 1, end, port);
  return code == std::errc() && stop == end && port >= 1 && port <= 65535;
}

}  // namespace

struct Client::State {
  explicit State(std::string node_address)
      : address(std::move(node_address)),
        socket(context, zmq::socket_type::dealer),
        next_id(std::uint64_t{std::random_device{}()} + kFirstId) {
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(schema::kMostControlBytes));
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMostMs);
    socket.set(zmq::sockopt::connect_timeout, schema::kControlReplyMs);
    socket.set(zmq::sockopt::ipv6, address.front() == '[');
    socket.connect("tcp://" + address);
  }

  Error unreachable(const std::string& why) const {
    return {ErrorKind::kUnreachable, "no tgd answers at " + address + why + ": " + why_silent(address) +
                                         " Another address is given with --address or TGCTL_ADDRESS"};
  }

  bool send(std::uint64_t id, const schema::RequestBody& body) {
    const std::string bytes = schema::encode_request({id, body});
    return socket.send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
  }

  // The next reply of any id, or nothing by the deadline or upon Ctrl-C.
  std::optional<Result<schema::Reply>> receive(Clock::time_point deadline) {
    while (!interrupted()) {
      zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
      const int left = remaining_ms(deadline);
      try {
        if (zmq::poll(&item, 1, std::chrono::milliseconds(left)) == 0) {
          if (left == 0) return std::nullopt;
          continue;
        }
      } catch (const zmq::error_t& error) {
        if (error.num() == EINTR) continue;
        throw;
      }
      zmq::message_t message;
      if (!socket.recv(message, zmq::recv_flags::dontwait)) continue;
      return schema::decode_reply({static_cast<const std::byte*>(message.data()), message.size()});
    }
    return std::nullopt;
  }

  Result<schema::ReplyBody> ask(const schema::RequestBody& body, int timeout_ms, bool probe,
                                const Meanwhile* meanwhile = nullptr);

  const std::string address;
  zmq::context_t context;
  zmq::socket_t socket;
  std::uint64_t next_id;
};

Result<schema::ReplyBody> Client::State::ask(const schema::RequestBody& body, int timeout_ms, bool probe,
                                             const Meanwhile* meanwhile) {
  const std::uint64_t id = next_id++;
  if (!send(id, body)) return unreachable("");
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  Clock::time_point heard = Clock::now();
  const std::chrono::milliseconds probe_every(meanwhile != nullptr ? kMeanwhileMs : kProbeMs);
  const schema::RequestBody question = meanwhile != nullptr ? meanwhile->question : schema::VersionRequest{};
  Clock::time_point next_probe = heard + probe_every;
  while (true) {
    std::optional<Result<schema::Reply>> reply = receive(probe ? std::min(deadline, next_probe) : deadline);
    if (interrupted()) return Error{ErrorKind::kFailed, "interrupted"};
    const Clock::time_point now = Clock::now();
    if (reply) {
      if (!reply->ok()) {
        return Error{ErrorKind::kCorrupt,
                     "what answers at " + address + " is no tgd of this version: " + reply->error().message};
      }
      heard = now;
      const std::uint64_t answered = reply->value().id;
      if (answered != id && answered != kUnreadable) {
        if (meanwhile != nullptr && answered > id) meanwhile->answered(reply->value().body);
        continue;
      }
      schema::ReplyBody& answer = reply->value().body;
      if (const auto* error = std::get_if<Error>(&answer)) return *error;
      return std::move(answer);
    }
    if (!probe) return unreachable(" within " + std::to_string(timeout_ms / 1000) + " s");
    if (now - heard >= std::chrono::milliseconds(kSilenceMs)) return unreachable(" any more");
    if (now >= deadline) {
      return Error{ErrorKind::kTimeout, "the node at " + address + " lives but did not finish the request within " +
                                            std::to_string(timeout_ms / 1000) + " s; see tgctl list"};
    }
    if (now < next_probe) continue;
    next_probe = now + probe_every;
    if (!send(next_id++, question)) return unreachable(" any more");
  }
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

Result<Client> Client::connect(const std::string& address) {
  if (!is_address(address)) {
    return Error{ErrorKind::kUsage,
                 std::string("\"") + schema::clip_text(address, 100) +
                     "\" is not an address of the form host:port, such as 127.0.0.1:7701 or [::1]:7701"};
  }
  try {
    return Client(std::make_unique<State>(address));
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kUnreachable, address + " cannot be connected to: " + error.what()};
  }
}

Result<schema::ReplyBody> Client::ask(const schema::RequestBody& body) {
  try {
    return state_->ask(body, schema::kControlReplyMs, false);
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kUnreachable, state_->address + ": " + error.what()};
  }
}

Result<schema::ReplyBody> Client::ask_patiently(const schema::RequestBody& body, int timeout_ms,
                                                const Meanwhile* meanwhile) {
  try {
    return state_->ask(body, timeout_ms, true, meanwhile);
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kUnreachable, state_->address + ": " + error.what()};
  }
}

const std::string& Client::address() const { return state_->address; }

}  // namespace tg::ctl
