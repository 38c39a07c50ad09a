#include "daemon/node/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace tg::daemon {
namespace {

constexpr std::uint64_t kFeedsPerSpan = 4;
constexpr std::uint64_t kStatusMs = 1000;

std::uint64_t number_of(const char* text) {
  std::uint64_t number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

ServiceManager::ServiceManager(const char* socket, const char* watchdog_micros, const char* watchdog_pid)
    : address_(socket == nullptr ? "" : socket) {
  const bool known = address_.starts_with('/') || address_.starts_with('@');
  if (!known || address_.size() >= sizeof(sockaddr_un::sun_path)) return;
  if (address_.front() == '@') address_.front() = '\0';
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The watchdog may be meant for the parent process, the one that systemd started.
  if (watchdog_pid != nullptr && number_of(watchdog_pid) != static_cast<std::uint64_t>(::getpid())) return;
  const std::uint64_t span_ms = number_of(watchdog_micros) / 1000;
  if (span_ms > 0) feed_every_ms_ = std::max<std::uint64_t>(span_ms / kFeedsPerSpan, 1);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

// A message that cannot be delivered at once is dropped.
bool ServiceManager::notify(const std::string& message) const {
  if (socket_ < 0) return false;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::copy(address_.begin(), address_.end(), to.sun_path);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const auto* const address = reinterpret_cast<const sockaddr*>(&to);
  return ::sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL, address, length) >= 0;
}

void ServiceManager::notify_ready() { notify("READY=1"); }
void ServiceManager::notify_stopping() { notify("STOPPING=1"); }

void ServiceManager::tick(std::uint64_t now_ms, std::uint64_t turns, const std::function<std::string()>& status) {
  if (socket_ < 0) return;
  if (feed_every_ms_ != 0 && now_ms - fed_ms_ >= feed_every_ms_ && turns != fed_turns_) {
    fed_ms_ = now_ms;
    fed_turns_ = turns;
    notify("WATCHDOG=1");
  }
  if (now_ms - status_ms_ < kStatusMs) return;
  status_ms_ = now_ms;
  if (std::string now = status(); now != status_ && notify("STATUS=" + now)) status_ = std::move(now);
}

}  // namespace tg::daemon
