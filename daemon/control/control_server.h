// The control port: answers tgctl, exchanges beats with the peers' control ports, and feeds Liveness. One thread of its
// own, so that a node that computes, evaluates or saves still answers and still beats.
//
// It answers by itself: version, status (own part from RunStore at once; the peers are asked over their control ports
// and merged within kPeerStatusMs), logs, fetch and delete (own files, or relayed to the named node). start, stop,
// plan, mistakes and the own part of examine go to the node's thread as a ControlCall and are answered through
// reply(); the peers are asked for theirs, and daemon/doctor/diagnose.h says what follows. One ROUTER (bound), one
// DEALER per peer, all owned by this thread. An operator with the right to read only is answered status, logs, fetch,
// version, and examine where links are not measured. merge.h says how the parts of several nodes become one answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/access/keyring.h"
#include "daemon/membership/liveness.h"
#include "daemon/step/threads/progress.h"
#include "daemon/store/run_store.h"
#include "kernels/base/log.h"
#include "schema/control/control.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

struct ControlCall {  // for the node's thread; answered by reply(token, ...)
  std::uint64_t token = 0;
  // StartRequest, ResumeRequest, StopRequest, LeaveRequest, ForecastRequest, ExamineRequest or
  // MisclassificationsRequest
  schema::RequestBody body;
};

struct LinkView {
  bool up = true;
  std::string problem;            // what is wrong with the link, "" if nothing is
  bool silence = false;           // no more is known of the problem than that nothing comes
  std::uint64_t incarnation = 0;  // the process at its other end, 0 = none known
};

class ControlServer {
 public:
  struct Hooks {  // all called on the control thread; must not block
    std::function<void(ControlCall)> call;
    std::function<void(Suspicion)> lost;
    std::function<void(Seat, const std::string& run_id)> prepares = {};  // it got on with preparing that run
    // Its beats are of that view, which is not this node's; said once a second at most.
    std::function<void(Seat, const std::string& run_id, std::uint32_t lineage, std::uint32_t view)> beats = {};
    std::function<LinkView(Seat)> link;                   // of the mesh; without it every link is up
    std::function<std::string()> own_problem = {};        // what else is wrong with this node, "" if nothing is
    std::function<schema::ComputeStatus()> compute = {};  // the device that trains here
    // How the node at a peer's address calls itself; asked while the link is down.
    std::function<void(Seat, const std::string&)> called = {};
  };
  ControlServer(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build, Keyring& keyring,
                RunStore& store, Progress& progress, Log& log, Hooks hooks);
  ~ControlServer();  // stops and joins within kShutdownMs

  // Binds; an error names the port and what to do ("address in use: another tgd? ...").
  Status start();
  // Any thread.
  bool up(Seat peer) const;  // it lives, and its control port is reached
  void reply(std::uint64_t token, schema::ReplyBody body);
  void heard(Seat peer);  // mesh data arrived: counts as life
  // members: by seat; empty = all nodes.
  void watch(const std::string& run_id, std::uint64_t step_timeout_ms, const Per<Seat, bool>& members = {});
  void set_step_timeout(std::uint64_t step_timeout_ms);
  void unwatch();
  std::uint64_t turns() const;  // of its thread, which goes round every kLivenessTickMs at least

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
