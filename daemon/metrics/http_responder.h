// The responses of the metrics port to /metrics, /healthz and /readyz. Called by the threads of the HTTP server,
// several at a time; reads the published numbers and the count of progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/metrics/metrics.h"
#include "daemon/metrics/text.h"
#include "daemon/step/threads/progress.h"

namespace tg::daemon {

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
};

class HttpResponder {
 public:
  // The node's thread publishes four times a second; a task may take longer, and while it writes a file it counts
  // progress.
  static constexpr std::chrono::seconds kMaxSilence{15};

  HttpResponder(NodeInfo about, const Metrics& metrics, const Progress& progress)
      : about_(std::move(about)), metrics_(metrics), progress_(progress) {}
  HttpResponse respond(std::string_view path, Metrics::Clock::time_point now);

 private:
  HttpResponse health(Metrics::Clock::time_point published, Metrics::Clock::time_point now);
  HttpResponse readiness(const Numbers& numbers) const;

  const NodeInfo about_;
  const Metrics& metrics_;
  const Progress& progress_;
  std::mutex mutex_;                      // guards the two below
  std::uint64_t last_count_ = 0;          // the last count of progress seen
  Metrics::Clock::time_point counted_{};  // when the count was seen to grow
};

}  // namespace tg::daemon
