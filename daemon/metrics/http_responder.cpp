#include "daemon/metrics/http_responder.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {

HttpResponse HttpResponder::respond(std::string_view path, Metrics::Clock::time_point now) {
  const Metrics::Published published = metrics_.published();
  if (path == "/metrics") return {200, metrics_text(about_, published.numbers, process_numbers()), kMetricsType};
  if (path == "/healthz") return health(published.at, now);
  if (path == "/readyz") return readiness(published.numbers);
  return {404, "tgd answers /metrics, /healthz and /readyz\n"};
}

HttpResponse HttpResponder::health(Metrics::Clock::time_point published, Metrics::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (const std::uint64_t count = progress_.count; std::exchange(last_count_, count) != count) counted_ = now;
  const auto silence = now - std::max(published, counted_);
  if (silence < kMaxSilence) return {200, "ok\n"};
  return {503, "the node's thread has made no progress for " +
                   std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silence).count()) + " s\n"};
}

HttpResponse HttpResponder::readiness(const Numbers& numbers) const {
  std::string missing;
  for (const Seat seat : about_.names.places())
    if (seat != about_.self && !numbers.peers[seat].up) missing += (missing.empty() ? "" : ", ") + about_.names[seat];
  if (missing.empty()) return {200, "all peers are up\n"};
  return {503, "not up: " + missing + "\n"};
}

}  // namespace tg::daemon
