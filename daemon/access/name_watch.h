// Watches whether the peers' names can be resolved. libzmq retries silently, so people would not learn why a peer does
// not connect. A separate thread looks every few seconds; a resolver may take as long. Any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tg::daemon {

class NameWatch {
 public:
  // Addresses among the hosts are ignored; without names there is no thread.
  explicit NameWatch(const std::vector<std::string>& hosts);
  ~NameWatch();

  // "node-c.lab does not resolve: Name or service not known", "" if it does, or has not been looked up yet.
  std::string problem(const std::string& host) const;

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> problems_;  // by name
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tg::daemon
