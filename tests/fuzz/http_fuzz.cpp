// Any bytes as what a stranger sends to the metrics port: nothing, or an answer of HTTP, and the port serves on
// answering.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/metrics/metrics_server.h"
#include "kernels/base/check.h"

namespace {

using namespace tg;
using namespace tg::daemon;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  TG_CHECK(::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  TG_CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

struct Port {
  Port() {
    const Status started = server.start("127.0.0.1", port);
    TG_CHECK(started.ok(), started.ok() ? "" : started.error().message);
  }
  const Progress progress;
  const Metrics metrics{2};
  HttpResponder responder{NodeInfo{{"node-a", "node-b"}, Seat(0), "build", "scalar"}, metrics, progress};
  MetricsServer server{responder};
  const std::uint16_t port = free_port();
};

// One of many addresses: a port of one is not free again before a minute has passed.
sockaddr_in next_source() {
  constexpr std::uint32_t kPortsOfOne = 10'000, kAddresses = 200;
  static std::uint32_t count = 0;
  sockaddr_in source = loopback(0);
  source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + count++ / kPortsOfOne % kAddresses);
  return source;
}

// What comes back for the bytes, once nothing more will be sent.
std::string ask(std::uint16_t port, std::string_view bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in source = next_source(), address = loopback(port);
  TG_CHECK(::bind(socket, reinterpret_cast<const sockaddr*>(&source), sizeof source) == 0);
  TG_CHECK(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(socket, SHUT_WR);
  std::string answer;
  char buffer[16 * 1024];
  for (ssize_t got; (got = ::recv(socket, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(got));
  ::close(socket);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Port port;
  const std::string answer = ask(port.port, std::string_view(reinterpret_cast<const char*>(data), size));
  TG_CHECK(answer.empty() || answer.starts_with("HTTP/1."), answer);
  static std::uint64_t count = 0;
  if (++count % 256 == 0) {
    const std::string live = ask(port.port, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    TG_CHECK(live.starts_with("HTTP/1.1 200") || live.starts_with("HTTP/1.1 503"), live);
  }
  return 0;
}
