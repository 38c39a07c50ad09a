// The connection to the service manager: systemd, for a service of Type=notify. It sends datagrams of sd_notify's
// protocol to the socket that NOTIFY_SOCKET names. The protocol is small and stable; libsystemd would bring libraries
// for compression and cryptography into a daemon that faces a network. Without a service manager every call does
// nothing; no call ever waits. Any thread may call notify_ready and notify_stopping; the node's thread calls tick.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tg::daemon {

class ServiceManager {
 public:
  // The values of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; null if not set.
  ServiceManager(const char* socket, const char* watchdog_micros, const char* watchdog_pid);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void notify_ready();  // the ports are open
  void notify_stopping();
  // Called in every turn of the node's loop. Feeds the watchdog four times in its interval, if `turns` (those of the
  // control thread) has grown since. Asks for the status, one line, once a second, and sends it if it changed.
  void tick(std::uint64_t now_ms, std::uint64_t turns, const std::function<std::string()>& status);

 private:
  bool notify(const std::string& message) const;

  std::string address_;  // as bind(2) takes it: a path, or a name after a zero byte
  int socket_ = -1;
  std::uint64_t feed_every_ms_ = 0;  // 0 = no watchdog
  std::uint64_t fed_ms_ = 0, fed_turns_ = 0, status_ms_ = 0;
  std::string status_;
};

}  // namespace tg::daemon
