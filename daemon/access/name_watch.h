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

// "node-c.lab does not resolve: Name or service not known", and what to do; "" for an address, and for a name that
// resolves. Takes as long as the resolver does.
std::string name_problem(const std::string& host);

class NameWatch {
 public:
  // Addresses among the hosts are ignored; without names there is no thread.
  explicit NameWatch(const std::vector<std::string>& hosts);
  ~NameWatch();

  // As name_problem; "" as long as it has not been looked up.
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
