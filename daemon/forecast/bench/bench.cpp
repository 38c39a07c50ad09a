#include "daemon/forecast/bench/bench.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/mesh/probe/send_burst.h"
#include "kernels/base/log.h"
#include "kernels/base/now.h"

namespace tg::daemon {
namespace {

// Long enough for one kernel, or one step of an engine, to end and to give back its memory.
constexpr std::chrono::seconds kMaxStopping{1};

}  // namespace

// Where the thread's result goes, as long as somebody listens.
struct Bench::Listener {
  std::mutex mutex;
  std::condition_variable ended;
  std::function<void(Result<schema::BenchReply>)> measured;  // empty: nobody
  bool measuring = false;                                    // the thread
};

Bench::Bench(Options options)
    : options_(std::move(options)),
      probe_(options_.about.members, options_.self),
      trips_(options_.about.members, options_.self),
      listener_(std::make_shared<Listener>()) {
  listener_->measured = options_.measured;
  options_.node.stop = stop_.get_token();
  if (const auto ping = trips_.start(now_seconds())) send_ping(*ping);
  go_on();
}

Bench::~Bench() {
  stop_.request_stop();
  std::unique_lock lock(listener_->mutex);
  listener_->measured = nullptr;
  listener_->ended.wait_for(lock, kMaxStopping, [this] { return !listener_->measuring; });
}

void Bench::send_ping(const RoundTrips::Ping& ping) {
  options_.mesh.send({ping.peer},
                     schema::encode_frame({key(), 0, 0}, schema::Probe{ping.number, true, {}}, options_.pool));
}

void Bench::on_probe_reply(Seat from, const schema::ProbeReply& reply) {
  if (reply.burst >= RoundTrips::kFirstNumber) {
    if (const auto next = trips_.on_reply(from, reply.burst, now_seconds())) send_ping(*next);
  } else if (const auto next = probe_.on_reply(from, reply, now_seconds())) {
    send_burst(options_.mesh, options_.pool, key(), *next);
  }
  go_on();
}

void Bench::tick() {
  probe_.tick(now_seconds());
  if (const auto ping = trips_.tick(now_seconds())) send_ping(*ping);
  go_on();
}

// The next part, once the one before is done: they would disturb each other. Where a peer does not answer, the link
// towards all of them cannot be measured.
void Bench::go_on() {
  if (thread_started_ || !trips_.is_done()) return;
  if (trips_.is_complete() && !probe_.is_done()) {
    if (const auto burst = probe_.start(now_seconds())) send_burst(options_.mesh, options_.pool, key(), *burst);
    return;
  }
  start_thread();
}

void Bench::start_thread() {
  thread_started_ = true;
  schema::BenchReply bench = options_.about;
  bench.measured_ms = unix_time_ms();
  bench.link_mbps = probe_.mbps();
  bench.round_trip_seconds = trips_.median_seconds();
  listener_->measuring = true;
  try {
    std::thread([bench = std::move(bench), node = options_.node, listener = listener_]() mutable {
      const Status measured = measure_node(node, bench);
      const std::lock_guard lock(listener->mutex);
      listener->measuring = false;
      listener->ended.notify_all();
      if (!listener->measured) return;
      if (measured)
        listener->measured(std::move(bench));
      else
        listener->measured(measured.error());
    }).detach();
  } catch (const std::system_error& error) {
    listener_->measuring = false;
    options_.measured(Error{ErrorKind::kFailed, std::string("no thread to measure on: ") + error.what()});
  }
}

}  // namespace tg::daemon
