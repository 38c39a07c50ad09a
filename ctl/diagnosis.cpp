#include "ctl/diagnosis.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string_view>
#include <thread>

#include "kernels/base/now.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kGreetingBytes = 64;
constexpr unsigned char kZmtp = 0xff;  // the first byte of every ZMTP greeting
// ZMTP 3's greeting (RFC 23): signature, version; then 20 bytes with the mechanism's name.
constexpr std::string_view kOpening("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12);

struct Resolved {
  int error = 0;  // of getaddrinfo
  sockaddr_storage address{};
  socklen_t bytes = 0;
};

Resolved resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  Resolved resolved;
  resolved.error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (resolved.error != 0) return resolved;
  resolved.bytes = found->ai_addrlen;
  std::memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return resolved;
}

// A resolver may take long and cannot be stopped: it is left to itself.
std::shared_future<Resolved> resolve_beside(const std::string& host, const std::string& port) {
  auto promise = std::make_shared<std::promise<Resolved>>();
  std::shared_future<Resolved> result = promise->get_future().share();
  std::thread([promise, host, port] { promise->set_value(resolve(host, port)); }).detach();
  return result;
}

struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd item{fd, events, 0};
  return poll(&item, 1, remaining_ms(deadline)) > 0;
}

// 0, or the errno of the attempt.
int connect_until(int fd, const Resolved& to, Clock::time_point deadline) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to.address), to.bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

// The first bytes that it sends; a complete ZMTP greeting, which requires a greeting from us.
std::string greeting_of(int fd, Clock::time_point deadline) {
  std::string greeting;
  char bytes[kGreetingBytes];
  while (greeting.size() < kGreetingBytes && wait_for(fd, POLLIN, deadline)) {
    const ssize_t got = recv(fd, bytes, kGreetingBytes - greeting.size(), 0);
    if (got <= 0) break;
    const bool first = greeting.empty();
    greeting.append(bytes, static_cast<std::size_t>(got));
    if (static_cast<unsigned char>(greeting[0]) != kZmtp) break;
    std::string ours(kOpening);
    ours.append("NULL").resize(kGreetingBytes);
    if (first && send(fd, ours.data(), ours.size(), MSG_NOSIGNAL) < 0) break;
  }
  return greeting;
}

bool is_zmtp(const std::string& greeting) {
  return !greeting.empty() && static_cast<unsigned char>(greeting[0]) == kZmtp;
}

std::string about_greeting(const std::string& greeting) {
  if (greeting.empty())
    return std::string(
               "something listens there but says nothing: a tgd that is stopped or hangs (on its machine, ps -C tgd -o "
               "pid,stat,args shows T where it is stopped: kill -CONT PID; else look at its log and restart it), or "
               "no tgd; ") +
           kIsItThePort;
  if (is_zmtp(greeting))
    return std::string("a ZeroMQ program listens there but does not answer; is it a tgd that has been stopped, and ") +
           kIsItThePort;
  return "the program that listens there is not a tgd: it says \"" +
         schema::clip_text(greeting.substr(0, greeting.find_first_of("\r\n")), kGreetingBytes) + "\"; " + kIsItThePort;
}

}  // namespace

Silence why_silent(const std::string& address) {
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kDiagnosisMs);
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::shared_future<Resolved> result = resolve_beside(host, address.substr(colon + 1));
  if (result.wait_until(deadline) != std::future_status::ready)
    return {"looking up the name " + host + " takes a long time; does the name server answer?"};
  const Resolved& resolved = result.get();
  if (resolved.error != 0)
    return {"the name " + host + " does not resolve (" + gai_strerror(resolved.error) +
            "); is it spelled as in the peer lines?"};
  const Descriptor socket(::socket(resolved.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd < 0) return {std::string(std::strerror(errno)) + "."};
  const int error = connect_until(socket.fd, resolved, deadline);
  if (error == ECONNREFUSED) return {std::string("nothing listens there; is tgd running, and ") + kIsItThePort};
  if (error == ETIMEDOUT || error == EAGAIN)
    return {"the machine does not answer; is it on, and does a firewall let the port through?"};
  if (error != 0) return {std::string(std::strerror(error)) + "; is the machine on, and the address right?"};
  const std::string greeting = greeting_of(socket.fd, deadline);
  const bool is_zeromq = is_zmtp(greeting);
  return {about_greeting(greeting), is_zeromq, is_zeromq && greeting.find("CURVE") == kOpening.size()};
}

}  // namespace tg::ctl
