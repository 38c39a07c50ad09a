// tgd: one per node. This file is the table of contents: it makes every part and connects them.

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "daemon/control/control_server.h"
#include "daemon/mesh/mesh.h"
#include "daemon/node/event_queue.h"
#include "daemon/node/node.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/store/run_store.h"
#include "engine/host/processors.h"
#include "engine/storage/disk_fault.h"
#include "kernels/base/log.h"
#include "kernels/host_home.h"
#include "kernels/kernels.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"
#include "schema/version.h"

extern char** environ;

namespace {

using namespace tg;          // NOLINT
using namespace tg::daemon;  // NOLINT

constexpr int kExitUsage = 2;
constexpr int kExitError = 1;

// libgomp reads its settings before main: idle engine threads must sleep, not spin, on cores that the exchange needs.
void make_openmp_passive(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  execv(program.c_str(), argv);  // returns only if it failed; spinning is slow, not wrong
}

int fail(const Error& error) {
  std::fprintf(stderr, "tgd: %s\n", error.message.c_str());
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitError;
}

std::uint64_t draw_incarnation() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32) | device()) | 1;  // never 0
}

// The end must not hang, whatever an engine call or a peer does.
void exit_at_the_latest(std::chrono::milliseconds patience, int status) {
  std::thread([patience, status] {
    std::this_thread::sleep_for(patience);
    _exit(status);
  }).detach();
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

int serve(const schema::NodeConfig& config) {
  const FaultInjection fault(config.fault);
  break_disk(config.fault);
  Result<const kernels::Kernels*> chosen = kernels::select(config.kernels);
  if (!chosen.ok()) return fail(chosen.error());
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

  // Signals are taken by this thread alone; every thread made from here on inherits the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::uint64_t incarnation = draw_incarnation();
  const std::string build = schema::build_id();
  const std::uint64_t threads =
      config.threads ? config.threads : static_cast<std::uint64_t>(engine::usable_processors());
  EventQueue queue;
  Progress progress;
  schema::FramePool pool;
  ControlServer control(config, incarnation, build, **store, progress, log,
                        {[&](ControlCall call) { queue.post(std::move(call)); },
                         [&](const Verdict& verdict) {
                           queue.post(PeerLost{verdict.seat, verdict.message, false, verdict.run_id});
                         }});
  Mesh mesh(
      config, incarnation, build, pool, log,
      {[&](Seat from, schema::Frame frame, std::shared_ptr<const void> keep) {
         queue.post_bounded(FrameArrived{from, std::move(frame), std::move(keep), std::chrono::steady_clock::now()});
       },
       [&](Seat peer, bool up) {
         queue.post(ConnectionChanged{peer, up});
       },
       [&](Seat peer, const std::string& what) {
         queue.post(PeerLost{peer, what, true});
       },
       [&](Seat peer) { control.heard(peer); }});
  Saver saver;
  static kernels::HostHome home(**chosen);  // never destroyed: a compute thread that was left behind holds arrays of it
  const RunContext context{config,
                           config.names(),
                           **chosen,
                           home,
                           mesh,
                           pool,
                           **store,
                           saver,
                           progress,
                           fault,
                           log,
                           [&](RunPrepared event) { queue.post(std::move(event)); },
                           [&](StepHappened&& event) { queue.post(std::move(event)); },
                           [&](RunSaved event) { queue.post(std::move(event)); },
                           [&](CheckpointWritten event) { queue.post(std::move(event)); },
                           threads,
                           build};
  Node node(context, queue, control);

  if (const Status started = control.start(); !started.ok()) return fail(started.error());
  if (const Status started = mesh.start(); !started.ok()) return fail(started.error());
  log.info("node-ready", {{"build", build},
                          {"nodes", config.peers.size()},
                          {"mesh-port", config.self().port},
                          {"control-port", config.self().port + 1},
                          {"threads", threads},
                          {"kernels", (*chosen)->name}});
  if (config.insecure)
    log.warning("insecure", {{"what", "no keys: anybody who reaches these ports may control this node"}});
  std::thread node_thread([&] { node.run(); });
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  log.info("shutting-down", {{"signal", strsignal(signal_number)}});
  exit_at_the_latest(std::chrono::milliseconds(2 * schema::kShutdownMs), 0);
  queue.post(ShutDown{});
  node_thread.join();
  queue.close();
  mesh.stop_receiving();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Result<schema::CommandLine> parsed = schema::parse_node_command_line(argc, argv, environ);
  if (!parsed.ok()) return fail(parsed.error());
  if (parsed->help) {
    std::fputs(parsed->help_text.c_str(), stdout);
    return 0;
  }
  if (parsed->version) {
    std::printf("tgd %s\n", schema::build_id().c_str());
    return 0;
  }
  if (parsed->check_config) {
    std::printf("tgd: %s is in order\n", parsed->config.node.c_str());
    return 0;
  }
  make_openmp_passive(argv);
  const int status = serve(parsed->config);
  // An engine call that never came back may still run: no static destructor under its feet.
  std::fflush(nullptr);
  _exit(status);
}
