#include "daemon/forecast/bench/bench.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "daemon/forecast/bench/bench_file.h"
#include "daemon/forecast/bench/node_speed.h"
#include "daemon/mesh/probe/send_burst.h"
#include "daemon/run/memory_check.h"
#include "kernels/base/log.h"

namespace tg::daemon {
namespace {

// One kernel, or a step of an engine, and giving back what they used.
constexpr std::chrono::seconds kMostStopping{1};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Whom the thread tells, as long as somebody listens.
struct Bench::Listener {
  std::mutex mutex;
  std::condition_variable ended;
  EventQueue* queue = nullptr;  // null: nobody
  bool measuring = false;       // the thread
};

Bench::Bench(const RunContext& context, std::uint64_t key, double line_mbps)
    : context_(context),
      key_(key),
      line_mbps_(line_mbps),
      probe_(context.names.size(), context.config.seat().index()),
      trips_(context.names.size(), context.config.seat().index()),
      listener_(std::make_shared<Listener>()) {
  listener_->queue = &context_.queue;
  if (const auto shot = trips_.start(now_seconds())) send_shot(*shot);
  go_on();
}

Bench::~Bench() {
  stop_.request_stop();
  std::unique_lock lock(listener_->mutex);
  listener_->queue = nullptr;
  listener_->ended.wait_for(lock, kMostStopping, [this] { return !listener_->measuring; });
}

void Bench::send_shot(const RoundTrips::Shot& shot) {
  context_.mesh.send({Seat(shot.peer)},
                     schema::encode_frame({key_, 0, 0}, schema::Probe{shot.number, true, {}}, context_.pool));
}

void Bench::on_probe_reply(Seat from, const schema::ProbeReply& reply) {
  if (reply.burst >= RoundTrips::kFirstNumber) {
    if (const auto next = trips_.replied(from, reply.burst, now_seconds())) send_shot(*next);
  } else if (const auto next = probe_.replied(from, reply, now_seconds())) {
    send_burst(context_.mesh, context_.pool, key_, *next);
  }
  go_on();
}

void Bench::tick() {
  probe_.tick(now_seconds());
  if (const auto shot = trips_.tick(now_seconds())) send_shot(*shot);
  go_on();
}

// The next part, once the one before is done: they would disturb each other. Where a peer does not answer, the link
// towards all of them cannot be measured.
void Bench::go_on() {
  if (thread_started_ || !trips_.done()) return;
  if (trips_.complete() && !probe_.done()) {
    if (const auto burst = probe_.start(now_seconds())) send_burst(context_.mesh, context_.pool, key_, *burst);
    return;
  }
  start_thread();
}

void Bench::start_thread() {
  thread_started_ = true;
  schema::BenchReply bench;
  bench.node = context_.config.node;
  bench.build = context_.build;
  bench.measured_ms = unix_time_ms();
  bench.members = context_.names.size();
  bench.line_mbps = line_mbps_;
  bench.link_mbps = probe_.mbps();
  bench.round_trip_seconds = trips_.median_seconds();
  const NodeUnderTest node{context_.kernels, static_cast<int>(context_.threads),
                           allowed_memory(context_.config.memory_mib << 20), stop_.get_token()};
  listener_->measuring = true;
  try {
    std::thread([bench = std::move(bench), node, key = key_, listener = listener_]() mutable {
      const Status measured = measure_node(node, bench);
      const std::lock_guard lock(listener->mutex);
      listener->measuring = false;
      listener->ended.notify_all();
      if (listener->queue == nullptr) return;
      if (measured)
        listener->queue->post(Benched{key, std::move(bench)});
      else
        listener->queue->post(Benched{key, measured.error()});
    }).detach();
  } catch (const std::system_error& error) {
    listener_->measuring = false;
    context_.queue.post(
        Benched{key_, Error{ErrorKind::kFailed, std::string("no thread to measure on: ") + error.what()}});
  }
}

void Bench::on_measured(Result<schema::BenchReply> result) {
  if (result) {
    const std::string path = bench_path(context_.config.state_dir);
    const Status written = write_bench(path, *result);
    if (written)
      result->saved = path;
    else
      context_.log.warning("bench-not-saved", {{"error", written.error().message}});
  }
  result_ = std::move(result);
}

std::optional<Result<schema::BenchReply>> Bench::take_result() { return std::exchange(result_, std::nullopt); }

}  // namespace tg::daemon
