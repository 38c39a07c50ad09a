// The mesh: one ROUTER bound on this node's mesh port, and one DEALER to every peer. Data flows from DEALER to ROUTER;
// only refusals go the other way.
//
// The receiving half (inbound.h) has a thread of its own: it reads frames from the ROUTER, validates them
// (schema::decode_frame is where peer bytes become trusted), assigns each connection to a peer by its hello and passes
// frames to the hooks. The name in a hello must be the one that the connection's key proves. The sending half
// (outbound.h) belongs to the node's thread: it has the DEALERs, the hellos and the queues of frames that wait for a
// connection. The halves share the link table (link_table.h).
//
// Two nodes have a link if the peer lines of each name the other, whatever else they name.
//
// A link is up when both directions work: the peer's hello has arrived, and it echoes one of ours. It is down as soon
// as TCP reports it: a killed process is noticed at once, without waiting for peer-timeout. It is down too, and
// redialled, when one direction has been silent for kMaxLinkSilence (link_table.h). A second process under a peer's
// name is refused with a reason while the first one answers; the process that our own connection reaches always wins.
//
// The malformed frames of a sender are counted and logged; after kMaxBadFrames it is ignored until it restarts. Silent
// connections and endless messages are cut (daemon/access/accepted_connections.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/access/keyring.h"
#include "daemon/mesh/link_table.h"
#include "daemon/mesh/mesh_hooks.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

class Mesh {
 public:
  // links: made from the same configuration; outlives the mesh, so that other threads may still read it.
  Mesh(const schema::NodeConfig& config, LinkTable& links, std::uint64_t incarnation, std::string build,
       Keyring& keyring, schema::FramePool& pool, Log& log, MeshHooks hooks);
  ~Mesh();

  // Binds, connects, starts the receiving thread. Errors name the port and the next action.
  Status start();

  // --- the node's thread ---
  // Never blocks. Returns a peer whose queue is full (kMaxQueuedFrames), if there is one.
  std::optional<Seat> send(const std::vector<Seat>& to, const schema::SharedFrame& frame);
  void tick(std::uint64_t now_ms);  // sends hellos and queued frames
  void drop_queued();               // called when a run has ended
  void drop_queued(Seat peer);      // called when the peer is no longer a member
  // Silent links are redialled sooner between runs. The port keeps its key while a start is being prepared.
  void set_run_phase(bool in_run, bool prepares = false);
  void close(int linger_ms);  // closes the sending half

  // --- any thread ---
  const LinkTable& links() const;
  void stop_receiving();  // joins the receiving thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
