// The metrics port: HTTP by CivetWeb on threads of its own, which ask Answers and touch nothing else of the node. Off
// unless the configuration names an address. There are no keys here: everyone who reaches the port can read.
//
// The cost of strangers is bounded: kThreads answer, kMaxWaiting connections wait for one, a connection has
// kRequestMs for its request, as long for its answer, and is closed after one. Whoever is slow holds one thread no
// longer, so with 200 slow connections that come again at once everybody is answered within a few seconds:
//   200 connections / 24 threads x 0.5 s = 4 s
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/metrics/answers.h"
#include "kernels/base/status.h"

namespace tg::daemon {

class MetricsServer {
 public:
  static constexpr int kThreads = 24;
  static constexpr int kMaxWaiting = 23;  // and one more that was accepted and does not fit
  static constexpr int kRequestMs = 500;
  static constexpr int kMaxUnaccepted = 256;  // connections that the kernel keeps for us
  static constexpr int kMaxRequestBytes = 4096;

  explicit MetricsServer(Answers& answers);
  ~MetricsServer();  // joins its threads
  // host: an address. An error says what is wrong with it and what to do.
  Status start(const std::string& host, std::uint16_t port);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
