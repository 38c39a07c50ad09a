// The addresses of the peers' names, looked up again every few seconds on threads of their own: a resolver may take
// long, and a name that it is slow with keeps no other one waiting. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tg::daemon {

// "node-c.lab does not resolve: Name or service not known", and what to do; "" for an address or a name that resolves.
std::string name_problem(const std::string& host);

class NameWatch {
 public:
  // Hosts given as addresses are ignored; without names there is no thread. Others are taken up when they are asked
  // for.
  explicit NameWatch(const std::vector<std::string>& hosts);
  ~NameWatch();

  // The last result of name_problem(); "" before the first lookup.
  std::string problem(const std::string& host) const;
  // The address to try after that one, the first after the last; "" while none is known. Those of a name that no longer
  // resolves are kept.
  std::string next_address(const std::string& host, const std::string& tried);
  // Whether it is one of the host's addresses; IPv4-mapped ones are IPv4.
  bool has_address(const std::string& host, const std::string& address) const;

 private:
  struct Name {
    std::vector<std::string> addresses;
    std::string problem;
  };
  void watch(const std::string& host);  // called with the lock held
  void loop(std::size_t first);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Name> names_;  // only grows
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tg::daemon
