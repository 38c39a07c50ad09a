#include "daemon/access/name_watch.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kInterval{3};
constexpr std::size_t kMaxThreads = 16;

std::string problem_text(const std::string& name, const Lookup& found) {
  if (found.error.empty()) return "";
  return name + " does not resolve: " + found.error +
         "; correct the peer line, or make the name known here (name server, /etc/hosts)";
}

}  // namespace

std::string name_problem(const std::string& host) { return problem_text(host, look_up(host)); }

NameWatch::NameWatch(const std::vector<std::string>& hosts) {
  const std::lock_guard lock(mutex_);
  for (const std::string& host : hosts) watch(host);
}

void NameWatch::watch(const std::string& host) {
  if (is_address_literal(host) || !names_.try_emplace(host).second) return;
  const std::size_t i = threads_.size();
  if (i == kMaxThreads) return;
  try {
    threads_.emplace_back([this, i] { loop(i); });
  } catch (const std::system_error&) {  // too many threads: at the next dial
    names_.erase(host);
  }
}

NameWatch::~NameWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& one : threads_) one.join();
}

std::string NameWatch::problem(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(host);
  return found == names_.end() ? "" : found->second.problem;
}

std::string NameWatch::next_address(const std::string& host, const std::string& tried) {
  const std::lock_guard lock(mutex_);
  watch(host);
  const auto found = names_.find(host);
  if (found == names_.end()) return host;
  const std::vector<std::string>& all = found->second.addresses;
  if (all.empty()) return "";
  const auto at = std::find(all.begin(), all.end(), tried);
  return at == all.end() || at + 1 == all.end() ? all.front() : *(at + 1);
}

bool NameWatch::has_address(const std::string& host, const std::string& address) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(host);
  return Networks(found == names_.end() ? std::vector{host} : found->second.addresses).contains(address);
}

void NameWatch::loop(std::size_t first) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::size_t number = 0;
    for (auto& [host, name] : names_) {
      if (number++ % kMaxThreads != first) continue;
      lock.unlock();
      Lookup now = look_up(host);
      lock.lock();
      if (ending_) return;
      name.problem = problem_text(host, now);
      if (!now.addresses.empty()) name.addresses = std::move(now.addresses);
    }
    changed_.wait_for(lock, kInterval, [this] { return ending_; });
  }
}

}  // namespace tg::daemon
