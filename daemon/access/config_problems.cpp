#include "daemon/access/config_problems.h"

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "daemon/access/keyring.h"
#include "daemon/access/name_watch.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kResolverTimeout{10};  // covers all names

std::vector<std::string> unresolved(const std::vector<schema::PeerAddress>& peers) {
  std::vector<std::string> problems;
  for (const schema::PeerAddress& peer : peers)
    if (const std::string problem = name_problem(peer.host); !problem.empty())
      problems.push_back(peer.place + "peer " + peer.name + ": " + problem);
  return problems;
}

}  // namespace

std::vector<std::string> config_problems(const schema::NodeConfig& config) {
  // A resolver cannot be stopped, so the thread is detached.
  std::promise<std::vector<std::string>> promise;
  std::future<std::vector<std::string>> answer = promise.get_future();
  std::thread([promise = std::move(promise), peers = std::vector(config.peers.begin(), config.peers.end())]() mutable {
    promise.set_value(unresolved(peers));
  }).detach();
  std::vector<std::string> problems;
  if (const auto keyring = Keyring::open(config); !keyring.ok())
    problems.push_back("key-file: " + keyring.error().message);
  if (answer.wait_for(kResolverTimeout) != std::future_status::ready) {
    problems.push_back("looking up the names in the peer lines takes longer than " +
                       std::to_string(kResolverTimeout.count()) + " s; does the name server answer?");
    return problems;
  }
  for (std::string& problem : answer.get()) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace tg::daemon
