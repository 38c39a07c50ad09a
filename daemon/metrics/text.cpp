#include "daemon/metrics/text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "schema/limits.h"

namespace tg::daemon {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  void begin(const char* name, MetricType type, const char* help) { all_.push_back({name, help, type, {}}); }
  // Adds a value to the family begun last.
  void add(double value, Labels labels = {}) {
    ClientMetric one;
    one.label = std::move(labels);
    (all_.back().type == MetricType::Counter ? one.counter.value : one.gauge.value) = value;
    all_.back().metric.push_back(std::move(one));
  }
  void add(const Histogram& histogram, Labels labels) {
    ClientMetric one;
    one.label = std::move(labels);
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
      so_far += histogram.counts()[i];
      if (i < Histogram::kBounds.size()) one.histogram.bucket.push_back({so_far, Histogram::kBounds[i]});
    }
    one.histogram.bucket.push_back({so_far, HUGE_VAL});
    one.histogram.sample_count = so_far;
    one.histogram.sample_sum = histogram.sum();
    all_.back().metric.push_back(std::move(one));
  }
  // Adds a family of one value, if there is one.
  void one(const char* name, MetricType type, const char* help, std::optional<double> value) {
    if (!value || std::isnan(*value)) return;
    begin(name, type, help);
    add(*value);
  }
  std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, all_);
    return out.str();
  }

 private:
  std::vector<MetricFamily> all_;
};

void add_run(Families& families, const Numbers& numbers) {
  using enum MetricType;
  families.one("tgd_steps_total", Counter, "Steps committed since tgd started.", static_cast<double>(numbers.steps));
  families.one("tgd_samples_total", Counter, "Samples of these steps that were this node's share.",
               static_cast<double>(numbers.samples));
  families.one("tgd_data_wait_seconds_total", Counter, "Time in steps that this node's engine waited for samples.",
               numbers.data_wait_seconds);
  families.one("tgd_loss", Gauge, "Mean loss over the global batch of the last committed step.", numbers.loss);
  families.one("tgd_gradient_nonzero_ratio", Gauge, "Share of nonzero codes in the last committed step.",
               numbers.nonzero_ratio);
  if (!std::isnan(numbers.accuracy)) {
    families.begin(
        "tgd_accuracy", Gauge,
        "Share of the test set that the last evaluation classified correctly; top 5: among the five highest.");
    families.add(numbers.accuracy, {{"top", "1"}});
    if (!std::isnan(numbers.accuracy_5)) families.add(numbers.accuracy_5, {{"top", "5"}});
  }
  families.begin("tgd_run_state", Gauge, "1 for the state of the active run, or of the last one; else 0.");
  for (const char* const word : words_of(schema::RunState()))
    families.add(numbers.run_state && std::string_view(to_word(*numbers.run_state)) == word ? 1 : 0, {{"state", word}});
  families.one("tgd_run_step", Gauge, "Committed steps of that run.", static_cast<double>(numbers.run_step));
  families.one("tgd_view_changes_total", Counter, "View changes after which this node continued the run.",
               static_cast<double>(numbers.view_changes));
  families.one("tgd_members_away", Gauge, "Members of the active run that have left it or are unreachable.",
               static_cast<double>(numbers.members_away));
  if (numbers.run_started > 0)
    families.one("tgd_run_started_timestamp_seconds", Gauge, "When that run was committed.", numbers.run_started);
  families.one("tgd_checkpoint_interval_seconds", Gauge, "Seconds between that run's checkpoints; 0 = none.",
               numbers.checkpoint_every);
  if (numbers.saved > 0)
    families.one("tgd_checkpoint_last_success_timestamp_seconds", Gauge,
                 "When this node last wrote a run's state: a checkpoint, or the last one.", numbers.saved);
  families.begin("tgd_step_phase_seconds", Histogram,
                 "Parts of a step, and evaluations. exchange: from this node's own gradient to the commit.");
  for (const StepPart part : values_of<StepPart>())
    families.add(numbers.step_parts[static_cast<std::size_t>(part)], {{"phase", to_word(part)}});
}

void add_device(Families& families, const NodeInfo& about) {
  using enum MetricType;
  if (!about.compute) return;
  const schema::ComputeStatus compute = about.compute();
  if (compute.device.empty()) return;
  const auto gauge = [&](const char* name, const char* help, double value) {
    families.begin(name, Gauge, help);
    families.add(value, {{"device", compute.device}, {"math", compute.math}});
  };
  gauge("tgd_device_up", "1 if the device that trains answers; else 0.", compute.problem.empty() ? 1 : 0);
  gauge("tgd_device_memory_bytes", "Memory of the device that trains.", static_cast<double>(compute.total_bytes));
  gauge("tgd_device_memory_free_bytes", "How much of it is free.", static_cast<double>(compute.free_bytes));
}

void add_peers(Families& families, const NodeInfo& about, const Numbers& numbers) {
  using enum MetricType;
  const auto each = [&](const char* name, MetricType type, const char* help, auto value_of) {
    if (about.names.size() < 2) return;
    families.begin(name, type, help);
    for (const Seat seat : about.names.places())
      if (seat != about.self)
        families.add(static_cast<double>(value_of(numbers.peers[seat])), {{"peer", about.names[seat]}});
  };
  each("tgd_peer_up", Gauge, "1 if both ports of the peer answer, in both directions; else 0.",
       [](const PeerNumbers& peer) { return peer.up; });
  each("tgd_peer_wait_seconds_total", Counter, "Time in steps with nothing to do but wait for the peer.",
       [](const PeerNumbers& peer) { return peer.wait_seconds; });
  each("tgd_wire_sent_bytes_total", Counter, "Sent to the peer's mesh port, ZeroMQ framing included.",
       [](const PeerNumbers& peer) { return peer.sent_bytes; });
  each("tgd_wire_received_bytes_total", Counter, "Received from the peer at the mesh port, ZeroMQ framing included.",
       [](const PeerNumbers& peer) { return peer.received_bytes; });
  families.begin("tgd_frames_rejected_total", Counter, "Frames rejected at the mesh port.");
  for (const Rejection reason : values_of<Rejection>())
    families.add(static_cast<double>(numbers.rejected[static_cast<std::size_t>(reason)]),
                 {{"reason", to_word(reason)}});
}

void add_process(Families& families, const ProcessNumbers& process) {
  using enum MetricType;
  families.one("process_cpu_seconds_total", Counter, "Processor time, user and system.", process.cpu_seconds);
  families.one("process_start_time_seconds", Gauge, "When the process started, Unix time.", process.start_seconds);
  families.one("process_resident_memory_bytes", Gauge, "Memory in RAM.", process.resident_bytes);
  families.one("process_virtual_memory_bytes", Gauge, "Mapped memory.", process.virtual_bytes);
  families.one("process_threads", Gauge, "Threads.", process.threads);
  families.one("process_open_fds", Gauge, "Open file descriptors.", process.open_descriptors);
  families.one("process_max_fds", Gauge, "Limit of open file descriptors.", process.max_descriptors);
}

}  // namespace

std::string metrics_text(const NodeInfo& about, const Numbers& numbers, const ProcessNumbers& process) {
  Families families;
  families.begin("tgd_build_info", MetricType::Gauge, "1, with build, kernels and node as labels.");
  families.add(1, {{"version", about.build},
                   {"protocol", std::to_string(schema::kProtocolVersion)},
                   {"node", about.names[about.self]},
                   {"kernels", about.kernels}});
  add_run(families, numbers);
  add_device(families, about);
  add_peers(families, about, numbers);
  add_process(families, process);
  return families.text();
}

}  // namespace tg::daemon
