// Checks every few seconds, on a thread of its own, whether the peers' names resolve: libzmq retries silently, so users
// would not learn why a peer does not connect. Any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tg::daemon {

// "node-c.lab does not resolve: Name or service not known", and what to do; "" for an address or a name that resolves.
// Takes as long as the resolver does.
std::string name_problem(const std::string& host);

class NameWatch {
 public:
  // Hosts given as addresses are ignored; without names there is no thread.
  explicit NameWatch(const std::vector<std::string>& hosts);
  ~NameWatch();

  // The last result of name_problem(); "" before the first lookup.
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
