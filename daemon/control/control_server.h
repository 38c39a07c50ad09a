// The control port: answers tgctl, exchanges heartbeats with the peers' control ports, and reports them to Liveness. It
// has a thread of its own, so that a node that computes, evaluates or saves still answers and sends heartbeats.
//
// It answers by itself: version, status (this node's part comes from RunStore; the peers are asked over their control
// ports, and the parts are merged within kPeerStatusMs), logs, fetch and delete (relayed to the named node, or own
// files, on a thread of their own: a disk that stands still costs an answer, kDiskReplyMs). start, stop, plan,
// misclassifications and this node's part of examine go to the node's thread as a ControlCall and are answered through
// reply(); peers are asked for their parts, and daemon/doctor/diagnose.h judges them. This thread owns one bound ROUTER
// and one DEALER per peer. An operator with read rights may use status, logs, fetch, version, and examine without
// measuring links. merge.h merges the parts of several nodes into one answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/access/keyring.h"
#include "daemon/membership/lineage.h"
#include "daemon/membership/liveness.h"
#include "daemon/step/threads/progress.h"
#include "daemon/store/run_store.h"
#include "kernels/base/log.h"
#include "schema/control/control.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

struct ControlCall {  // a request for the node's thread, which answers by reply(token, ...)
  std::uint64_t token = 0;
  // StartRequest, ResumeRequest, StopRequest, LeaveRequest, ForecastRequest, ExamineRequest or
  // MisclassificationsRequest
  schema::RequestBody body;
};

struct LinkView {
  bool up = true;
  std::string problem;            // a sentence; "" = none
  bool silent = false;            // all that is known of the problem is that no data arrives
  std::uint64_t incarnation = 0;  // the peer's process; 0 = unknown
};

class ControlServer {
 public:
  struct Hooks {  // called on the control thread; must not block
    std::function<void(ControlCall)> on_call;
    std::function<void(Suspicion)> on_suspicion;
    std::function<void(Seat, const std::string& run_id)> on_prepare_progress = {};
    // The peer's heartbeat carries a view, or an ended lineage, that is not this node's. Called at most once a second;
    // and once, with view 0, when it has left the run.
    std::function<void(Seat, const schema::Heartbeat&)> on_stale_view = {};
    std::function<LinkView(Seat)> link;                   // the mesh link; if not set, every link is up
    std::function<std::string()> own_problem = {};        // a further problem of this node; "" = none
    std::function<schema::ComputeStatus()> compute = {};  // the device that trains here
    // The name that the node at a peer's address reports; asked for while the link is down.
    std::function<void(Seat, const std::string&)> on_name = {};
  };
  ControlServer(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build, Keyring& keyring,
                RunStore& store, Progress& progress, Log& log, Hooks hooks);
  ~ControlServer();  // stops and joins within kShutdownMs

  // Binds; an error names the port and what to do ("address in use: another tgd? ...").
  Status start();
  // Any thread.
  bool is_up(Seat peer) const;  // alive, with a reachable control port
  void reply(std::uint64_t token, schema::ReplyBody body);
  void on_mesh_traffic(Seat peer);  // mesh data counts as a sign of life
  // members: by seat; empty = all nodes.
  // lineage: of a run that has begun.
  void watch(const std::string& run_id, std::uint64_t step_timeout_ms, const Per<Seat, bool>& members = {},
             Lineage lineage = {});
  void set_step_timeout(std::uint64_t step_timeout_ms);
  void unwatch();
  // Heartbeats name this lineage, which has ended here, while others run a lower one.
  void show_ended(const std::string& run_id, Lineage lineage);
  std::uint64_t turns() const;  // counts the turns of its loop, at least one every kLivenessTickMs

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
