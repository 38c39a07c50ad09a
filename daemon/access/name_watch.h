// Whether the peers' names can be resolved. libzmq tries again and again by itself and says nothing, so people would
// not learn why a peer does not come. A thread of its own looks every few seconds; a resolver may take as long. Any
// thread.
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
  // Addresses among the hosts are not looked at; without any name there is no thread.
  explicit NameWatch(const std::vector<std::string>& hosts);
  ~NameWatch();

  // "node-c.lab does not resolve: Name or service not known", "" where it does, or has not been looked at yet.
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
