#include "daemon/access/zap_authenticator.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace tg::daemon {
namespace {

constexpr const char* kZapAddress = "inproc://zeromq.zap.01";
constexpr const char* kZapVersion = "1.0";
constexpr const char* kDomain = "tgd";
constexpr int kZapEnforceDomain = 93;  // Debian's header hides it behind the draft macro; the library has it
constexpr std::chrono::milliseconds kPoll{200};
constexpr std::chrono::seconds kRefresh{1};  // how often the key file is checked for a change

// version, request id, domain, address, identity, mechanism, credentials
enum ZapPart : std::size_t { kVersion, kRequestId, kPartDomain, kAddress, kIdentity, kMechanism, kCredentials };

}  // namespace

ZapAuthenticator::ZapAuthenticator(zmq::context_t& context, std::string port, Keyring& keyring, Networks allowed,
                                   Log& log)
    : port_(std::move(port)),
      keyring_(keyring),
      allowed_(std::move(allowed)),
      log_(log),
      requests_(context, zmq::socket_type::rep) {}

ZapAuthenticator::~ZapAuthenticator() {
  ending_ = true;
  if (thread_.joinable()) thread_.join();
}

void ZapAuthenticator::start() {
  requests_.set(zmq::sockopt::linger, 0);
  requests_.bind(kZapAddress);
  thread_ = std::thread([this] { loop(); });
}

void ZapAuthenticator::secure(zmq::socket_t& socket, const schema::KeyPair& own) {
  socket.set(zmq::sockopt::zap_domain, kDomain);
  const int on = 1;
  int is_on = 0;
  std::size_t size = sizeof is_on;
  if (zmq_setsockopt(socket.handle(), kZapEnforceDomain, &on, sizeof on) != 0 ||
      zmq_getsockopt(socket.handle(), kZapEnforceDomain, &is_on, &size) != 0)
    throw zmq::error_t();
  TG_CHECK(is_on == 1, "this libzmq would accept every connection if its handler died");
  // Without keys libzmq's own filter of addresses is not used: it refuses without a word.
  if (!keyring_.has_keys()) return;
  socket.set(zmq::sockopt::curve_server, 1);
  if (zmq_setsockopt(socket.handle(), ZMQ_CURVE_SECRETKEY, own.secret.data(), own.secret.size()) != 0)
    throw zmq::error_t();
}

bool ZapAuthenticator::rebind(zmq::socket_t& socket, const schema::KeyPair& own) {
  if (unbound_.empty()) {
    unbound_ = socket.get(zmq::sockopt::last_endpoint);
    socket.unbind(unbound_);
    secure(socket, own);
  }
  try {
    socket.bind(unbound_);
  } catch (const zmq::error_t& error) {
    if (error.num() != EADDRINUSE) log_.warning("bind-failed", {{"port", port_}, {"error", error.what()}});
    return false;
  }
  unbound_.clear();
  return true;
}

void ZapAuthenticator::loop() {
  auto next_refresh = std::chrono::steady_clock::now() + kRefresh;
  while (!ending_) {
    try {
      zmq::pollitem_t item{requests_.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq::poll(&item, 1, kPoll) > 0) answer_request();
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      log_.error("zap-authenticator-failed", {{"port", port_}, {"error", error.what()}});
      break;
    }
    if (const auto now = std::chrono::steady_clock::now(); now >= next_refresh) {
      keyring_.refresh(log_);
      next_refresh = now + kRefresh;
    }
  }
  requests_.close();
}

void ZapAuthenticator::answer_request() {
  std::vector<std::string> parts;
  zmq::message_t part;
  do {
    if (!requests_.recv(part, zmq::recv_flags::none)) return;
    parts.push_back(part.to_string());
  } while (part.more());
  parts.resize(std::max<std::size_t>(parts.size(), kCredentials + 1));
  const ZapRequest request{parts[kAddress], parts[kMechanism], parts[kCredentials]};
  const std::optional<std::string> user = parts[kVersion] == kZapVersion ? authenticate(request) : std::nullopt;
  if (!user) refuse(request);
  const std::string reply[] = {kZapVersion,           parts[kRequestId], user ? "200" : "400",
                               user ? "" : "unknown", user.value_or(""), ""};
  for (const std::string& one : reply)
    requests_.send(zmq::buffer(one), &one == std::end(reply) - 1 ? zmq::send_flags::none : zmq::send_flags::sndmore);
}

std::optional<std::string> ZapAuthenticator::authenticate(const ZapRequest& request) {
  if (!keyring_.has_keys())
    return allowed_.contains(request.address) ? std::optional<std::string>(Keyring::kAnonymous) : std::nullopt;
  schema::Key key{};
  if (request.mechanism != "CURVE" || request.credentials.size() != key.size()) return std::nullopt;
  std::memcpy(key.data(), request.credentials.data(), key.size());
  const std::string identity = Keyring::identity_of(key);
  return keyring_.find_user(identity) ? std::optional(identity) : std::nullopt;
}

void ZapAuthenticator::refuse(const ZapRequest& request) {
  ++refused_;
  const std::optional<std::uint64_t> times = throttle_.happened();
  if (!times) return;
  std::string key = "none";
  if (schema::Key open{}; request.credentials.size() == open.size()) {
    std::memcpy(open.data(), request.credentials.data(), open.size());
    key = schema::short_key(open);
  }
  log_.warning("connection-refused",
               {{"port", port_},
                {"from", request.address},
                {"key", key},
                {"why", keyring_.has_keys() ? "no node and no operator of this mesh has that key"
                                            : "no peer line and no control-allow names that address"},
                {"times", *times}});
}

}  // namespace tg::daemon
