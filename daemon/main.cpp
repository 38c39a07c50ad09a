// tgd: one per node. This file is the table of contents: run_node() makes every part and connects them.

#include <fcntl.h>
#include <malloc.h>
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
#include <thread>

#include "daemon/access/config_problems.h"
#include "daemon/access/keyring.h"
#include "daemon/access/networks.h"
#include "daemon/control/control_server.h"
#include "daemon/mesh/mesh.h"
#include "daemon/metrics/http_responder.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/node/device_watch.h"
#include "daemon/node/end_signals.h"
#include "daemon/node/event_queue.h"
#include "daemon/node/node.h"
#include "daemon/node/service_manager.h"
#include "daemon/simulate/recompute.h"
#include "daemon/simulate/simulation.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/store/directory_id.h"
#include "daemon/store/run_store.h"
#include "engine/compute_device.h"
#include "engine/resources/descriptors.h"
#include "engine/resources/processors.h"
#include "engine/storage/disk_fault.h"
#include "kernels/base/log.h"
#include "kernels/base/random.h"
#include "kernels/base/regular_file.h"
#include "kernels/host_memory_space.h"
#include "kernels/kernels.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"
#include "schema/options/recompute_command.h"
#include "schema/options/simulate_command.h"
#include "schema/text.h"
#include "schema/version.h"

namespace {

using namespace tg;          // NOLINT
using namespace tg::daemon;  // NOLINT

constexpr int kExitUsage = 2;
constexpr int kExitError = 1;
constexpr std::chrono::seconds kDeviceTimeout{30};  // eight devices may take half of it
constexpr std::chrono::seconds kShutdownTimeout{2 * schema::kShutdownMs / 1000};

// A standard stream that is closed would become a file's or a socket's descriptor, and the log would be written there.
// A write that fails (the reader is gone, ulimit -f, a background process at a terminal) returns an error; no signal
// ends or stops the node.
void reserve_standard_streams() {
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  ::close(descriptor);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGTTOU}) std::signal(number, SIG_IGN);
}

// Returns freed memory to the system. By default glibc keeps it for the thread that freed it, in up to eight arenas for
// each processor, and in each up to twice the largest block that was ever freed: bursts of unread answers left 212 MiB
// that way, with 50 MiB in use. Only a run's flat arrays are larger than kLargestBlock, and they are made once.
void limit_freed_memory() {
  constexpr int kArenas = 4, kMaxKept = 4 << 20, kLargestBlock = 2 << 20;
  ::mallopt(M_ARENA_MAX, kArenas);
  ::mallopt(M_TRIM_THRESHOLD, kMaxKept);
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlock);
}

// libgomp reads its settings before main: idle engine threads must sleep, not spin, on cores that the exchange needs.
void make_openmp_passive(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  execv(program.c_str(), argv);  // returns only if it failed; spinning is slow, not wrong
}

int print_error(const Error& error) {
  LineWriter(STDERR_FILENO, [](std::uint64_t) { return ""; }).write("tgd: " + error.message);
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitError;
}

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  return print_error({ErrorKind::kIo, std::string("cannot write to stdout: ") + std::strerror(errno)});
}

// Ends the process without destructors: an engine call that never returned may still run.
[[noreturn]] void exit_process(int status) {
  std::fflush(nullptr);
  _exit(status);
}

// Injects the configured disk fault; for tests.
void inject_disk_fault(const std::optional<schema::Fault>& fault) {
  if (!fault || !fault->disk) return;
  const auto calls = std::make_shared<std::atomic<std::uint64_t>>(0);  // calls of the fault's kind
  engine::set_disk_fault([fault = *fault, calls](engine::DiskCall call) {
    if (static_cast<std::uint8_t>(call) != static_cast<std::uint8_t>(*fault.disk)) return 0;
    const std::uint64_t count = ++*calls;
    if (fault.kind == schema::FaultKind::kFull) return count >= fault.step ? ENOSPC : 0;
    if (count != fault.step) return 0;
    if (fault.kind == schema::FaultKind::kKill) ::kill(::getpid(), SIGKILL);
    while (fault.kind == schema::FaultKind::kHang) std::this_thread::sleep_for(std::chrono::hours(1));
    return EIO;
  });
}

engine::DeviceChoice device_choice(const schema::NodeConfig& config) {
  return {config.engine, {static_cast<int>(config.device), config.math}};
}

// The first device, or why an installed module has none, regardless of the configuration. A thread of its own asks the
// device, and is abandoned if it hangs.
std::string first_device() {
  const auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> future = answer->get_future();
  std::thread([answer] {
    kernels::HostMemorySpace host(*kernels::available().back());
    const auto compute = engine::ComputeDevice::choose({}, host, schema::build_id());
    if (compute.ok() && compute->accelerator() != nullptr)
      answer->set_value(", " + std::string(compute->accelerator()->library()) + " on " + compute->name());
    else
      answer->set_value(!compute.ok() || compute->module_missing() ? "" : ", no device: " + compute->why_not());
  }).detach();
  if (future.wait_for(kDeviceTimeout) == std::future_status::ready) return future.get();
  return ", no device: it has not answered for " + std::to_string(kDeviceTimeout.count()) +
         " s; look at it with nvidia-smi";
}

// The line for --version, with the variant of the kernels that auto chooses here.
std::string version_line() {
  const Result<const kernels::Kernels*> chosen = kernels::select("auto");
  return "tgd " + schema::build_id() + ", protocol " + std::to_string(schema::kProtocolVersion) + ", " +
         engine::cpu_library() + ", kernels " + std::string(chosen.ok() ? (*chosen)->name : "none") + first_device() +
         "\n";
}

// Logs the device that trains, or why the CPU does.
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

// The configured number, but no more than the processors that this process may use.
std::uint64_t compute_threads(const schema::NodeConfig& config, Log& log) {
  const auto processors = static_cast<std::uint64_t>(engine::usable_processors());
  if (config.threads == 0) return processors;
  if (config.threads > processors)
    log.warning("threads-limited", {{"configured", config.threads},
                                    {"used", processors},
                                    {"why", "more threads than processors that this process may use"}});
  return std::min(config.threads, processors);
}

Result<std::unique_ptr<RunStore>> open_store(const schema::NodeConfig& config, Log& log) {
  const auto log_deletion = [&log](const Deletion& deletion) {
    log.write(deletion.unfetched ? LogLevel::kWarning : LogLevel::kInfo, "run-deleted",
              {{"run", deletion.id}, {"why", deletion.why}, {"model-never-fetched", deletion.unfetched}});
  };
  std::vector<std::string> warnings;
  Result<std::unique_ptr<RunStore>> store = RunStore::open(
      config.state_dir, config.node, warnings,
      {.limits = {.runs = config.keep_runs, .age_ms = config.keep_age_ms, .bytes = config.keep_mib << 20},
       .deleted = log_deletion});
  if (!store.ok()) return store;
  for (const std::string& warning : warnings) log.warning("state-dir", {{"what", warning}});
  return store;
}

// --- hooks between the parts ---

ControlServer::Hooks control_hooks(EventQueue& queue, LinkTable& links, const DeviceWatch& device,
                                   std::function<std::string()> own_problem) {
  const auto on_lost = [&queue](const Suspicion& verdict) {
    queue.post(PeerLost{.peer = verdict.seat, .message = verdict.message, .run_id = verdict.run_id});
  };
  const auto link = [&links](Seat peer) {
    const std::optional<LinkProblem> problem = links.problem(peer);
    return LinkView{.up = links.is_up(peer),
                    .problem = problem ? problem->why : "",
                    .silent = problem && problem->silent,
                    .incarnation = links[peer].incarnation};
  };
  return {.on_call = [&queue](ControlCall call) { queue.post(std::move(call)); },
          .on_suspicion = on_lost,
          .on_prepare_progress =
              [&queue](Seat seat, const std::string& run) {
                queue.post(PrepareProgress{seat, run});
              },
          .on_stale_view =
              [&queue](Seat seat, const schema::Heartbeat& beat) {
                queue.post(ForeignHeartbeat{seat, beat});
              },
          .link = link,
          .own_problem = std::move(own_problem),
          .compute = [&device] { return device.status(); },
          .on_name = [&links](Seat peer, const std::string& name) { links.note_name(peer, name); }};
}

MeshHooks mesh_hooks(const schema::NodeConfig& config, EventQueue& queue, ControlServer& control, Log& log) {
  const auto on_lost = [&queue](Seat peer, const std::string& what) {
    queue.post(PeerLost{.peer = peer, .message = what, .only_during_run = true});
  };
  const auto on_frame = [&config, &queue, &log, on_lost](Seat from, schema::Frame frame,
                                                         std::shared_ptr<const void> keep) {
    const auto result = queue.post_frame(
        {.from = from, .frame = std::move(frame), .keep = std::move(keep), .at = std::chrono::steady_clock::now()});
    if (result != EventQueue::PostResult::kFloodBegins) return;
    const std::string& peer = config.nodes[from];
    log.warning("flood-refused", {{"peer", peer}, {"most-bytes", schema::kMaxQueuedBytesPerPeer}});
    on_lost(from, peer + " floods " + config.node + ": " + std::to_string(schema::kMaxQueuedBytesPerPeer >> 20) +
                      " MiB of its frames are queued");
  };
  return {
      .on_frame = on_frame,
      .on_connection_changed = [&queue](Seat peer, bool up) { queue.post(ConnectionChanged{.peer = peer, .up = up}); },
      .on_misbehaved = on_lost,
      .on_traffic = [&control](Seat peer) { control.on_mesh_traffic(peer); }};
}

RunContext::Hooks run_hooks(EventQueue& queue) {
  return {.on_prepared = [&queue](RunPrepared event) { queue.post(std::move(event)); },
          .on_rebuilt = [&queue](RunRebuilt event) { queue.post(std::move(event)); },
          .on_step_event = [&queue](RunStepEvent&& event) { queue.post(std::move(event)); },
          .on_saved = [&queue](RunSaved event) { queue.post(std::move(event)); },
          .on_checkpoint_written = [&queue](CheckpointWritten event) { queue.post(std::move(event)); },
          .on_history_read = [&queue](HistoryRead event) { queue.post(std::move(event)); }};
}

// --- the node ---

// A node without its metrics port still takes part: a failure is only logged.
Status start_metrics(const schema::NodeConfig& config, MetricsServer& server, Log& log) {
  if (config.metrics_host.empty()) return {};
  const std::string address = schema::host_and_port(config.metrics_host, config.metrics_port);
  Status started = server.start(config.metrics_host, config.metrics_port);
  if (!started.ok()) {
    log.warning("metrics-off", {{"why", started.error().message}});
  } else if (schema::is_loopback(config.metrics_host)) {
    log.info("metrics", {{"address", address}});
  } else {
    log.warning("metrics-open",
                {{"address", address}, {"what", "anyone who reaches this port can read; it has no keys"}});
  }
  return started;
}

void log_ready(const RunContext& context) {
  const schema::NodeConfig& config = context.self.config;
  Log& log = context.news.log;
  log.info("node-ready", {{"build", context.self.build},
                          {"nodes", config.peers.size()},
                          {"mesh-port", config.mesh_port()},
                          {"control-port", config.control_port()},
                          {"threads", context.machine.threads},
                          {"kernels", context.machine.kernels.name}});
  if (config.insecure)
    log.warning("insecure", {{"what",
                              "no keys: anyone at an address of the peer lines or of control-allow may control "
                              "this node"}});
}

// The objects that live as long as the process, because threads that cannot be joined may use them: an engine call that
// never returned, the watch over a device that hangs, CivetWeb's threads, which take up to two seconds to end.
struct ProcessScope {
  const schema::NodeConfig& config;
  const std::string& path;  // the configuration file
  const PeerFile::Read read_config;
  const kernels::Kernels& kernels;
  const engine::ComputeDevice& compute;
  const DeviceWatch device{compute};
  Progress progress{};
  Metrics metrics{config.nodes.kMaxNodes};
  HttpResponder responder{{.names = config.nodes,
                           .self = config.seat(),
                           .build = schema::build_id(),
                           .kernels = std::string(kernels.name),
                           .compute = [this] { return device.status(); }},
                          metrics,
                          progress};
  MetricsServer metrics_server{responder};
};

// Runs the node until a signal ends it. Returns the exit status. Its objects are destroyed in reverse order.
int run_node(ProcessScope& scope, EndSignals& end_signals, const std::vector<std::string>& config_warnings) {
  const schema::NodeConfig& config = scope.config;
  const std::string build = schema::build_id();
  Result<std::unique_ptr<Keyring>> keyring = Keyring::open(config);
  if (!keyring.ok()) return print_error(keyring.error());
  Log log(config.node, config.log_level, config.log_format);
  Result<std::unique_ptr<RunStore>> store = open_store(config, log);
  if (!store.ok()) return print_error(store.error());
  const Result<std::uint64_t> directory = directory_id(config.state_dir);
  if (!directory.ok()) return print_error(directory.error());
  for (const std::string& warning : config_warnings) log.warning("configuration", {{"what", warning}});
  log_device(scope.compute, scope.device.status(), log);

  const std::uint64_t incarnation = draw_bits() | 1;  // never 0
  const std::uint64_t threads = compute_threads(config, log);
  const FaultInjection fault(config.fault);
  EventQueue queue(config.nodes.kMaxNodes);
  LinkTable links(config, log);
  std::string metrics_problem;  // written before the control server starts
  schema::FramePool pool;
  JobQueue saver, writer;
  const auto own_problem = [&] {
    const std::string disk = disk_problem(writer, config);
    return disk.empty() ? metrics_problem : disk;
  };
  ControlServer control(config, incarnation, build, **keyring, **store, scope.progress, log,
                        control_hooks(queue, links, scope.device, own_problem));
  Mesh mesh(config, links, incarnation, build, **keyring, pool, log, mesh_hooks(config, queue, control, log));
  const RunContext context{
      .self = {.config = config,
               .names = config.nodes,
               .build = build,
               .directory = *directory,
               .incarnation = incarnation},
      .machine = {.kernels = scope.kernels, .compute = scope.compute, .threads = threads, .fault = fault},
      .network = {.mesh = mesh, .pool = pool},
      .storage = {.store = **store, .saver = saver, .writer = writer},
      .news = {.progress = scope.progress, .metrics = scope.metrics, .log = log},
      .hooks = run_hooks(queue)};
  ServiceManager service_manager(std::getenv("NOTIFY_SOCKET"), std::getenv("WATCHDOG_USEC"),
                                 std::getenv("WATCHDOG_PID"));
  PeerFile peer_file(scope.path, scope.read_config, queue);
  Node node(context, queue, control, service_manager, peer_file);
  if (const Status served = start_metrics(config, scope.metrics_server, log); !served.ok())
    metrics_problem = served.error().message;

  if (const Status started = control.start(); !started.ok()) return print_error(started.error());
  if (const Status started = mesh.start(); !started.ok()) return print_error(started.error());
  log_ready(context);
  service_manager.notify_ready();
  std::thread node_thread([&] { node.run(); });
  const int signal_number = end_signals.wait(kShutdownTimeout);
  log.info("shutting-down", {{"signal", strsignal(signal_number)}});
  service_manager.notify_stopping();
  queue.post(ShutDown{});
  node_thread.join();
  queue.close();
  mesh.stop_receiving();
  return 0;
}

// The objects made here are never destroyed: see ProcessScope.
[[noreturn]] void run_daemon(const schema::CommandLine& line, const PeerFile::Read& read_config) {
  const schema::NodeConfig& config = line.config;
  EndSignals end_signals;  // before all other threads
  if (const Status enough = engine::reserve_descriptors(schema::descriptors_of(config.peers.size()),
                                                        "a mesh of " + std::to_string(config.peers.size()) + " nodes");
      !enough.ok())
    exit_process(print_error(enough.error()));
  inject_disk_fault(config.fault);
  const Result<const kernels::Kernels*> kernels = kernels::select(config.kernels);
  if (!kernels.ok()) exit_process(print_error(kernels.error()));
  kernels::HostMemorySpace host(**kernels);
  const Result<engine::ComputeDevice> compute =
      engine::ComputeDevice::choose(device_choice(config), host, schema::build_id());
  if (!compute.ok()) exit_process(print_error(compute.error()));
  ProcessScope scope{
      .config = config, .path = line.path, .read_config = read_config, .kernels = **kernels, .compute = *compute};
  exit_process(run_node(scope, end_signals, line.warnings));
}

// Prints all problems. A thread that asks the resolver may still run.
[[noreturn]] void check_config(const schema::CommandLine& line) {
  std::vector<std::string> problems = line.warnings;
  for (std::string& problem : config_problems(line.config)) problems.push_back(std::move(problem));
  if (problems.empty()) exit_process(print("configuration OK (" + line.config.node + ")\n"));
  for (const std::string& problem : problems) print_error({ErrorKind::kUsage, problem});
  exit_process(kExitUsage);
}

// Recomputes a run that has ended, without a node. A signal ends it at once.
int recompute(int argc, char** argv) {
  const Result<schema::RecomputeCommand> command = schema::parse_recompute_command(argc, argv);
  if (!command.ok()) return print_error(command.error());
  if (!command->help.empty()) return print(command->help);
  make_openmp_passive(argv);
  limit_freed_memory();
  const Status same = daemon::recompute({command->directory, command->data_dir, command->threads},
                                        [](const std::string& line) { print(line + "\n"); });
  return same.ok() ? 0 : print_error(same.error());
}

Result<schema::JobSpec> read_job(const schema::SimulateCommand& command) {
  const Result<std::string> text = RegularFile::text(command.job_file, schema::kMaxSpecBytes);
  if (!text)
    return Error{ErrorKind::kUsage,
                 command.job_file + " cannot be read: " + text.error().message + "; simulate takes a job file"};
  Result<schema::JobSpec> job = schema::parse_job(*text, command.job_file);
  if (!job.ok()) return job;
  for (const std::string& setting : command.settings)
    if (Status set = schema::override_job_key(*job, setting); !set.ok()) return set.error();
  return job;
}

// Simulates a run without a node. A signal ends it during preparation and after each slice.
int simulate(int argc, char** argv) {
  const Result<schema::SimulateCommand> command = schema::parse_simulate_command(argc, argv);
  if (!command.ok()) return print_error(command.error());
  if (!command->help.empty()) return print(command->help);
  make_openmp_passive(argv);
  const Result<schema::JobSpec> job = read_job(*command);
  if (!job.ok()) return print_error(job.error());
  sigset_t end_signals;
  sigemptyset(&end_signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&end_signals, number);
  pthread_sigmask(SIG_BLOCK, &end_signals, nullptr);  // before all other threads
  const Result<bool> complete = daemon::simulate(
      {*job, command->weights, command->data_dir,
       command->threads.value_or(static_cast<std::uint64_t>(std::max(engine::usable_processors(), 1))),
       command->all_replicas, command->gradients_every, command->output},
      [](const std::string& line) { print(line + "\n"); },
      [&end_signals] {
        constexpr timespec kNow{};
        return sigtimedwait(&end_signals, nullptr, &kNow) > 0;
      });
  if (!complete.ok()) return print_error(complete.error());
  return *complete ? 0 : kExitError;
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  if (argc > 1 && argv[1] == schema::kRecomputeCommand) exit_process(recompute(argc, argv));
  if (argc > 1 && argv[1] == schema::kSimulateCommand) exit_process(simulate(argc, argv));
  Result<schema::CommandLine> parsed = schema::parse_node_command_line(argc, argv);
  if (!parsed.ok()) return print_error(parsed.error());
  if (parsed->help) return print(parsed->help_text);
  if (parsed->version) exit_process(print(version_line()));  // the thread that asks a device may still run
  if (std::string problem = own_address_problem(parsed->config.self().host); !problem.empty())
    parsed->warnings.push_back(std::move(problem));
  if (parsed->check_config) check_config(*parsed);
  make_openmp_passive(argv);
  limit_freed_memory();
  run_daemon(*parsed, [argc, argv]() -> Result<schema::NodeConfig> {
    const Result<schema::CommandLine> again = schema::parse_node_command_line(argc, argv);
    if (!again.ok()) return again.error();
    return again->config;
  });
}
