// The metrics port: CivetWeb's HTTP server on threads of its own, which call HttpResponder and touch nothing else of
// the node. Off unless the configuration names an address. It has no keys: every client that reaches the port can read.
//
// The cost of clients is bounded: kThreads answer, kMaxWaiting connections wait for a thread, and a connection has
// kRequestMs for its request, as long for its answer, and is closed after one. A slow client holds a thread no longer,
// so among 200 slow connections that return at once every client is answered within a few seconds:
//   200 connections / 24 threads x 0.5 s = 4 s
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/metrics/http_responder.h"
#include "kernels/base/status.h"

namespace tg::daemon {

class MetricsServer {
 public:
  static constexpr int kThreads = 24;
  static constexpr int kMaxWaiting = 23;  // besides one more that was accepted and does not fit
  static constexpr int kRequestMs = 500;
  static constexpr int kMaxUnaccepted = 256;  // connections in the kernel's queue
  static constexpr int kMaxRequestBytes = 4096;

  explicit MetricsServer(HttpResponder& responder);
  ~MetricsServer();  // joins its threads
  // host: an address. An error names the problem and what to do.
  Status start(const std::string& host, std::uint16_t port);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
