#include "daemon/access/io_threads.h"

#include <algorithm>
#include <cstddef>

#include "daemon/access/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kMaxNamedPeerThreads = 16;  // an affinity mask has 63 bits besides thread 0

}  // namespace

IoThreads io_threads_of(const schema::NodeConfig& config) {
  IoThreads threads{.by_peer = Per<Seat, std::uint64_t>(config.peers.size(), 1)};
  std::size_t named = 0;
  for (const Seat peer : config.peers.places())
    if (peer != config.seat() && !is_address_literal(config.peers[peer].host))
      threads.by_peer[peer] = std::uint64_t{2} << (named++ % kMaxNamedPeerThreads);
  threads.count += static_cast<int>(std::min(named, kMaxNamedPeerThreads));
  return threads;
}

}  // namespace tg::daemon
