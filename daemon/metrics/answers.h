// The metrics port's answers to the paths /metrics, /healthz and /readyz. Called by the threads of the HTTP server,
// several at a time; it works with the published numbers, and with the count of progress.
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

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
};

class Answers {
 public:
  // The node's thread publishes four times a second; one piece of work may take longer, and while it writes a file it
  // counts progress.
  static constexpr std::chrono::seconds kMaxSilence{15};

  Answers(AboutNode about, const Metrics& metrics, const Progress& progress)
      : about_(std::move(about)), metrics_(metrics), progress_(progress) {}
  HttpAnswer to(std::string_view path, Metrics::Clock::time_point now);

 private:
  HttpAnswer health(Metrics::Clock::time_point published, Metrics::Clock::time_point now);
  HttpAnswer readiness(const Numbers& numbers) const;

  const AboutNode about_;
  const Metrics& metrics_;
  const Progress& progress_;
  std::mutex mutex_;                      // guards the two
  std::uint64_t last_count_ = 0;          // of progress, as it was seen
  Metrics::Clock::time_point counted_{};  // when it was seen to have grown
};

}  // namespace tg::daemon
