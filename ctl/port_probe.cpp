#include "ctl/port_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/base/now.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kGreetingBytes = 64;
// ZMTP 3's greeting (RFC 23): signature, version; then 20 bytes with the mechanism's name.
constexpr std::string_view kOpening("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12);

struct Resolved {
  int error = 0;  // getaddrinfo's
  std::shared_ptr<addrinfo> found;
};

// On a thread of its own: a resolver may take long and cannot be stopped.
std::future<Resolved> resolve(const std::string& host, const std::string& port) {
  std::promise<Resolved> promise;
  std::future<Resolved> result = promise.get_future();
  std::thread([host, port, promise = std::move(promise)]() mutable {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    promise.set_value({error, error == 0 ? std::shared_ptr<addrinfo>(found, freeaddrinfo) : nullptr});
  }).detach();
  return result;
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd item{fd, events, 0};
  return poll(&item, 1, remaining_ms(deadline)) > 0;
}

// 0, or the errno of the attempt.
int connect_until(int fd, const addrinfo& to, Clock::time_point deadline) {
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

std::string place_text(const addrinfo& address) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  return (std::strchr(host, ':') != nullptr ? "[" + std::string(host) + "]" : host) + ":" + port;
}

struct Connected {
  std::string problem = {};  // with the name
  std::string place = {};    // the address in digits; where none accepts, the first one
  int fd = -1;
  int error = 0;  // the first address gave it
};

// Tries the addresses of a name in their order, each for an equal share of the time that is left.
Connected connect_to_any(const std::string& address, Clock::time_point deadline) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  std::future<Resolved> result = resolve(host, address.substr(colon + 1));
  if (result.wait_until(deadline) != std::future_status::ready)
    return {"the name " + host + " has not been resolved in time; does the name server answer?"};
  const Resolved resolved = result.get();
  if (resolved.error != 0)
    return {"the name " + host + " does not resolve (" + gai_strerror(resolved.error) +
            "); is it spelled as in the peer lines?"};
  Connected made;
  int left = 0;
  for (const addrinfo* one = resolved.found.get(); one != nullptr; one = one->ai_next) ++left;
  for (const addrinfo* one = resolved.found.get(); one != nullptr; one = one->ai_next, --left) {
    const int fd = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto now = Clock::now();
    const int error = fd < 0 ? errno : connect_until(fd, *one, now + (deadline - now) / left);
    if (error == 0 || made.place.empty()) made = {"", place_text(*one), error == 0 ? fd : -1, error};
    if (error == 0) return made;
    if (fd >= 0) close(fd);
  }
  return made;
}

// What a connection finds, which is closed again.
Connected tried(const std::string& address) {
  const Connected made = connect_to_any(address, Clock::now() + std::chrono::milliseconds(kPortProbeMs));
  if (made.fd >= 0) close(made.fd);
  return made;
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
    if (greeting[0] != kOpening[0]) break;
    std::string ours(kOpening);
    ours.append("NULL").resize(kGreetingBytes);
    if (first && send(fd, ours.data(), ours.size(), MSG_NOSIGNAL) < 0) break;
  }
  return greeting;
}

PortProbe verdict_on(const std::string& greeting) {
  if (greeting.empty())
    return {std::string("the port accepts connections but sends nothing: a tgd that is stopped or hangs (ps -C tgd -o "
                        "pid,stat,args shows T where it is stopped: kill -CONT PID; else restart it), or no tgd; ") +
            kPortHint};
  if (greeting[0] != kOpening[0])
    return {"the program that listens there is not a tgd: it says \"" +
            schema::clip_text(greeting.substr(0, greeting.find_first_of("\r\n")), kGreetingBytes) + "\"; " + kPortHint};
  return {
      std::string("a ZeroMQ program listens there but does not answer; is it a tgd that is stopped, and ") + kPortHint,
      true, greeting.find("CURVE") == kOpening.size()};
}

}  // namespace

Result<std::string> own_node() {
  if (tried(kDefaultAddress).fd >= 0) return std::string(kDefaultAddress);
  std::vector<std::string> usable, foreign;
  std::ifstream table("/proc/net/unix");  // the fourth column is __SO_ACCEPTCON, the last one the path
  for (std::string line; std::getline(table, line);) {
    if (line.find(" 00010000 ") == std::string::npos || !line.ends_with("/control.sock")) continue;  // it listens
    const std::string path = line.substr(line.find('/'));
    if (const bool may_write = access(path.c_str(), W_OK) == 0; may_write || errno == EACCES)
      (may_write ? usable : foreign).push_back(path);
  }
  if (usable.size() == 1) return usable[0];
  const std::string start = std::string("nothing listens at ") + kDefaultAddress + ", and on this machine ";
  if (usable.size() > 1)
    return Error{ErrorKind::kUnreachable, start + "several tgd run; give one with --address: " + joined(usable, ", ")};
  if (!foreign.empty())
    return Error{ErrorKind::kUnreachable, start + "tgd has the local socket " + joined(foreign, ", ") +
                                              ", which this user may not open; use sudo, or give --address with the "
                                              "address of its listen line"};
  return std::string(kDefaultAddress);
}

std::string place_that_accepts(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  if (schema::is_ipv4(host) || schema::is_ipv6(host)) return address;
  const std::string place = tried(address).place;
  return place.empty() ? address : place;
}

PortProbe probe_port(const std::string& address) {
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kPortProbeMs);
  const Connected made = connect_to_any(address, deadline);
  if (!made.problem.empty()) return {made.problem};
  const std::string greeting = made.fd >= 0 ? greeting_of(made.fd, deadline) : "";
  if (made.fd >= 0) close(made.fd);
  const int error = made.error;
  if (error == ECONNREFUSED) return {std::string("nothing listens there; is tgd running, and ") + kPortHint};
  if (error == ETIMEDOUT || error == EAGAIN)
    return {"the machine does not answer; is it on, and does a firewall let the port through?"};
  if (error == ENETUNREACH) return {"this machine has no route to that address; ip route shows those that it has."};
  if (error != 0) return {std::string(std::strerror(error)) + "; is the machine on, and the address right?"};
  return verdict_on(greeting);
}

}  // namespace tg::ctl
