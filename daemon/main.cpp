// tgd: one per node. This file is the table of contents: it makes every part and connects them.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "daemon/access/keyring.h"
#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "daemon/control/control_server.h"
#include "daemon/mesh/mesh.h"
#include "daemon/metrics/answers.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/node/device_watch.h"
#include "daemon/node/end_signals.h"
#include "daemon/node/event_queue.h"
#include "daemon/node/node.h"
#include "daemon/node/service_manager.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/store/run_store.h"
#include "engine/compute_device.h"
#include "engine/resources/descriptors.h"
#include "engine/resources/processors.h"
#include "engine/storage/disk_fault.h"
#include "kernels/base/log.h"
#include "kernels/host_home.h"
#include "kernels/kernels.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"
#include "schema/text.h"
#include "schema/version.h"

extern char** environ;

namespace {

using namespace tg;          // NOLINT
using namespace tg::daemon;  // NOLINT

constexpr int kExitUsage = 2;
constexpr int kExitError = 1;
constexpr std::chrono::seconds kDevicePatience{30};  // eight devices may take half of it
constexpr std::chrono::seconds kEndPatience{2 * schema::kShutdownMs / 1000};

// A standard stream that is closed would become a file's or a socket's descriptor, and the log would be written there.
// A reader of one that has gone is an error of that write, no signal.
void keep_standard_streams() {
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  ::close(descriptor);
  std::signal(SIGPIPE, SIG_IGN);
}

// libgomp reads its settings before main: idle engine threads must sleep, not spin, on cores that the exchange needs.
void make_openmp_passive(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  execv(program.c_str(), argv);  // returns only if it failed; spinning is slow, not wrong
}

int fail(const Error& error) {
  LineWriter(STDERR_FILENO, [](std::uint64_t) { return ""; }).write("tgd: " + error.message);
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitError;
}

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  return fail({ErrorKind::kIo, std::string("cannot write to stdout: ") + std::strerror(errno)});
}

std::uint64_t draw_incarnation() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32) | device()) | 1;  // never 0
}

// For tests: the disk as the configured fault has it.
void break_disk(const std::optional<schema::Fault>& fault) {
  if (!fault || !fault->disk) return;
  engine::set_disk_fault([fault = *fault](engine::DiskCall call) {
    static std::atomic<std::uint64_t> calls{0};
    if (static_cast<std::uint8_t>(call) != static_cast<std::uint8_t>(*fault.disk)) return 0;
    const std::uint64_t count = ++calls;
    if (fault.kind == schema::FaultKind::kFull) return count >= fault.step ? ENOSPC : 0;
    if (count != fault.step) return 0;
    if (fault.kind == schema::FaultKind::kKill) ::kill(::getpid(), SIGKILL);
    while (fault.kind == schema::FaultKind::kHang) std::this_thread::sleep_for(std::chrono::hours(1));
    return EIO;
  });
}

// Without its metrics a node is worth as much to the others.
Status serve_metrics(const schema::NodeConfig& config, MetricsServer& server, Log& log) {
  if (config.metrics_host.empty()) return {};
  const std::string address = schema::host_and_port(config.metrics_host, config.metrics_port);
  Status started = server.start(config.metrics_host, config.metrics_port);
  if (!started.ok()) {
    log.warning("metrics-off", {{"why", started.error().message}});
  } else if (schema::is_loopback(config.metrics_host)) {
    log.info("metrics", {{"address", address}});
  } else {
    log.warning("metrics-open", {{"address", address}, {"what", "whoever reaches this port can read; it has no keys"}});
  }
  return started;
}

engine::DeviceChoice device_choice(const schema::NodeConfig& config) {
  return {config.engine, {static_cast<int>(config.device), config.math}};
}

// The first device, or why a module that is installed gives none: no setting has been read. Asked on a thread that is
// left behind where the device hangs.
std::string first_device() {
  const auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> said = answer->get_future();
  std::thread([answer] {
    static kernels::HostHome host(*kernels::available().back());
    const auto compute = engine::ComputeDevice::choose({}, host, schema::build_id());
    if (compute.ok() && compute->accelerator() != nullptr)
      answer->set_value(", " + std::string(compute->accelerator()->library()) + " on " + compute->name());
    else
      answer->set_value(!compute.ok() || compute->module_missing() ? "" : ", no device: " + compute->why_not());
  }).detach();
  if (said.wait_for(kDevicePatience) == std::future_status::ready) return said.get();
  return ", no device: it has not answered for " + std::to_string(kDevicePatience.count()) +
         " s; look at it with nvidia-smi";
}

// Of the kernels' variants, the one that auto takes here.
std::string version_line() {
  const Result<const kernels::Kernels*> chosen = kernels::select("auto");
  return "tgd " + schema::build_id() + ", protocol " + std::to_string(schema::kProtocolVersion) + ", " +
         engine::cpu_library() + ", kernels " + std::string(chosen.ok() ? (*chosen)->name : "none") + first_device() +
         "\n";
}

// What trains, and why it is not what may have been meant.
void log_device(const engine::ComputeDevice& compute, const schema::ComputeStatus& status, Log& log) {
  if (compute.accelerator() != nullptr) {
    log.info("engine", {{"engine", status.engine},
                        {"device", status.device},
                        {"math", status.math},
                        {"library", std::string(compute.accelerator()->library())},
                        {"memory-free", status.free_bytes},
                        {"memory-total", status.total_bytes}});
  } else if (!compute.why_not().empty()) {
    log.write(compute.module_missing() ? LogLevel::kInfo : LogLevel::kWarning, "engine",
              {{"engine", status.engine}, {"why", compute.why_not()}});
  }
}

int serve(const schema::NodeConfig& config, const std::vector<std::string>& config_warnings) {
  EndSignals end_signals;
  if (const Status enough = engine::reserve_descriptors(schema::descriptors_of(config.peers.size()),
                                                        "a mesh of " + std::to_string(config.peers.size()) + " nodes");
      !enough.ok())
    return fail(enough.error());
  const FaultInjection fault(config.fault);
  break_disk(config.fault);
  Result<const kernels::Kernels*> chosen = kernels::select(config.kernels);
  if (!chosen.ok()) return fail(chosen.error());
  const std::string build = schema::build_id();
  // Never destroyed: a compute thread that was left behind holds arrays of the home.
  static kernels::HostHome host(**chosen);
  const Result<engine::ComputeDevice> found = engine::ComputeDevice::choose(device_choice(config), host, build);
  if (!found.ok()) return fail(found.error());
  static const engine::ComputeDevice compute = *found;
  Result<std::unique_ptr<Keyring>> keyring = Keyring::open(config);
  if (!keyring.ok()) return fail(keyring.error());
  Log log(config.node, config.log_level);
  std::vector<std::string> warnings;
  Result<std::unique_ptr<RunStore>> store = RunStore::open(
      config.state_dir, config.node, warnings,
      {{config.keep_runs, config.keep_age_ms, config.keep_mib << 20}, [&](const Deletion& deletion) {
         log.write(deletion.unfetched ? LogLevel::kWarning : LogLevel::kInfo, "run-deleted",
                   {{"run", deletion.id}, {"why", deletion.why}, {"model-never-fetched", deletion.unfetched}});
       }});
  if (!store.ok()) return fail(store.error());
  for (const std::string& warning : warnings) log.warning("state-dir", {{"what", warning}});
  for (const std::string& warning : config_warnings) log.warning("configuration", {{"what", warning}});
  static const DeviceWatch device(compute);
  log_device(compute, device.status(), log);

  const std::uint64_t incarnation = draw_incarnation();
  const auto processors = static_cast<std::uint64_t>(engine::usable_processors());
  const std::uint64_t threads = config.threads ? std::min(config.threads, processors) : processors;
  if (config.threads > threads)
    log.warning("threads-limited", {{"configured", config.threads},
                                    {"used", threads},
                                    {"why", "more threads than processors that this process may use"}});
  EventQueue queue(config.peers.size());
  LinkTable links(config, log);
  // Never destroyed, as the two that use them: CivetWeb takes up to two seconds to end its threads, and the process
  // ends without that.
  static Progress progress;
  static Metrics metrics(config.peers.size());
  std::string metrics_problem;  // written before anybody asks
  schema::FramePool pool;
  ControlServer control(config, incarnation, build, **keyring, **store, progress, log,
                        {[&](ControlCall call) { queue.post(std::move(call)); },
                         [&](const Verdict& verdict) {
                           queue.post(PeerLost{verdict.seat, verdict.message, false, verdict.run_id});
                         },
                         [&](Seat peer) {
                           const std::optional<LinkProblem> problem = links.problem(peer);
                           return LinkView{links.up(peer), problem ? problem->why : "", links[peer].incarnation};
                         },
                         [&] { return metrics_problem; }, [&] { return device.status(); }});
  Mesh mesh(
      config, links, incarnation, build, **keyring, pool, log,
      {[&](Seat from, schema::Frame frame, std::shared_ptr<const void> keep) {
         const auto posted =
             queue.post_frame({from, std::move(frame), std::move(keep), std::chrono::steady_clock::now()});
         if (posted != EventQueue::Posted::kFloods) return;
         log.warning("flood-refused",
                     {{"peer", config.peers[from].name}, {"most-bytes", schema::kMostQueuedBytesPerPeer}});
         queue.post(PeerLost{from,
                             config.peers[from].name + " floods " + config.node + ": " +
                                 std::to_string(schema::kMostQueuedBytesPerPeer >> 20) + " MiB of its frames wait",
                             true});
       },
       [&](Seat peer, bool up) {
         queue.post(ConnectionChanged{peer, up});
       },
       [&](Seat peer, const std::string& what) {
         queue.post(PeerLost{peer, what, true});
       },
       [&](Seat peer) { control.heard(peer); }});
  Saver saver;
  const RunContext context{config,
                           config.names(),
                           **chosen,
                           compute,
                           mesh,
                           pool,
                           **store,
                           saver,
                           progress,
                           fault,
                           metrics,
                           log,
                           [&](RunPrepared event) { queue.post(std::move(event)); },
                           [&](StepHappened&& event) { queue.post(std::move(event)); },
                           [&](RunSaved event) { queue.post(std::move(event)); },
                           [&](CheckpointWritten event) { queue.post(std::move(event)); },
                           threads,
                           build};
  ServiceManager service_manager(std::getenv("NOTIFY_SOCKET"), std::getenv("WATCHDOG_USEC"),
                                 std::getenv("WATCHDOG_PID"));
  Node node(context, queue, control, service_manager);
  static Answers answers(
      {context.names, config.seat(), build, std::string((*chosen)->name), [] { return device.status(); }}, metrics,
      progress);
  static MetricsServer metrics_server(answers);
  if (const Status served = serve_metrics(config, metrics_server, log); !served.ok())
    metrics_problem = served.error().message;

  if (const Status started = control.start(); !started.ok()) return fail(started.error());
  if (const Status started = mesh.start(); !started.ok()) return fail(started.error());
  log.info("node-ready", {{"build", build},
                          {"nodes", config.peers.size()},
                          {"mesh-port", config.mesh_port()},
                          {"control-port", config.control_port()},
                          {"threads", threads},
                          {"kernels", (*chosen)->name}});
  if (const std::string& own = config.self().host; is_address_literal(own) && !is_local_address(own))
    log.warning("own-address", {{"what", "the own peer line says " + own + ", which is no address of this machine"},
                                {"next", "right only if something forwards it here; else mend the line"}});
  if (config.insecure)
    log.warning("insecure",
                {{"what",
                  "no keys: whoever calls from an address of the peer lines or of control-allow may control "
                  "this node"}});
  service_manager.ready();
  std::thread node_thread([&] { node.run(); });
  const int signal_number = end_signals.wait(kEndPatience);
  log.info("shutting-down", {{"signal", strsignal(signal_number)}});
  service_manager.stopping();
  queue.post(ShutDown{});
  node_thread.join();
  queue.close();
  mesh.stop_receiving();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  Result<schema::CommandLine> parsed = schema::parse_node_command_line(argc, argv, environ);
  if (!parsed.ok()) return fail(parsed.error());
  if (parsed->help) return print(parsed->help_text);
  if (parsed->version) {
    const int printed = print(version_line());
    _exit(printed);  // the thread that asks a device may still run
  }
  if (parsed->check_config) {
    if (!parsed->warnings.empty()) return fail({ErrorKind::kUsage, parsed->warnings.front()});
    return print("tgd: " + parsed->config.node + " is in order\n");
  }
  make_openmp_passive(argv);
  const int status = serve(parsed->config, parsed->warnings);
  // An engine call that never came back may still run: no static destructor under its feet.
  std::fflush(nullptr);
  _exit(status);
}
