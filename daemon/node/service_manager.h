// Tells the service manager how this process is: systemd, for a service of Type=notify. Speaks sd_notify's protocol, a
// datagram to the socket that NOTIFY_SOCKET names. It is small and stable; libsystemd would bring libraries for
// compression and cryptography into a daemon that faces a network. Without a service manager every call does nothing;
// no call ever waits. ready and stopping: any thread; tick: the node's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tg::daemon {

class ServiceManager {
 public:
  // As the environment says: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID (null where not set).
  ServiceManager(const char* socket, const char* watchdog_micros, const char* watchdog_pid);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void ready();  // the ports are open
  void stopping();
  // Called as often as the node's thread goes round. Feeds the watchdog, four times in its span, if `turns` has grown
  // since: what the node's thread does not do itself, other threads do. Each second, asks for the status, one line, and
  // tells it if it is another one.
  void tick(std::uint64_t now_ms, std::uint64_t turns, const std::function<std::string()>& status);

 private:
  bool tell(const std::string& message) const;

  std::string address_;  // as bind(2) takes it: the name in the file system, or behind a zero byte
  int socket_ = -1;
  std::uint64_t feed_every_ms_ = 0;  // 0 = there is no watchdog
  std::uint64_t fed_ms_ = 0, fed_turns_ = 0, status_ms_ = 0;
  std::string status_;
};

}  // namespace tg::daemon
