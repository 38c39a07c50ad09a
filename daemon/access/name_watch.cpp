#include "daemon/access/name_watch.h"

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>

#include "daemon/access/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kInterval{3};

}  // namespace

std::string name_problem(const std::string& name) {
  if (is_address_literal(name)) return "";
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int failed = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (failed != 0)
    return name + " does not resolve: " + ::gai_strerror(failed) +
           "; correct the peer line, or make the name known here (name server, /etc/hosts)";
  ::freeaddrinfo(found);
  return "";
}

NameWatch::NameWatch(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts)
    if (!is_address_literal(host)) problems_[host];
  if (!problems_.empty()) thread_ = std::thread([this] { loop(); });
}

NameWatch::~NameWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string NameWatch::problem(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = problems_.find(host);
  return found == problems_.end() ? "" : found->second;
}

void NameWatch::loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    for (auto& [name, problem] : problems_) {  // the set of names never changes
      lock.unlock();
      std::string now = name_problem(name);
      lock.lock();
      problem = std::move(now);
      if (ending_) return;
    }
    changed_.wait_for(lock, kInterval, [this] { return ending_; });
  }
}

}  // namespace tg::daemon
