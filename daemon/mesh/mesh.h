// The mesh: one ROUTER bound on this node's mesh port, one DEALER to every peer; data flows DEALER -> ROUTER. Only a
// refusal goes the other way.
//
// The receiving half (inbound.h) has a thread of its own: it takes frames off the ROUTER, has them validated
// (schema::decode_frame is where peer bytes become trusted), ties each connection to a peer by its hello and hands
// frames to the hooks. The name in a hello must be the one that the connection's key proves. The sending half
// (outbound.h) belongs to the node's thread: the DEALERs, hellos and the frames that wait for a connection. Both know
// the links (link_table.h).
//
// A link is up when both directions have been seen to work: the peer's hello came, and it says that it heard ours. It
// is down as soon as TCP says so: a killed process is seen at once, without waiting for peer-timeout. It is
// down, too, and dialled again, when one direction has been silent for kMaxLinkSilence (link_table.h). A second
// process under a peer's name is refused, and told so, as long as the first one answers; the one that our own
// connection reaches always wins.
//
// A sender of malformed frames is counted, named and, after kMaxBadFrames, ignored until it restarts. Connections that
// say nothing or never end a message are cut (daemon/access/connections.h).
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
  // links: made from the same configuration; must outlive the mesh, so that others may still ask it.
  Mesh(const schema::NodeConfig& config, LinkTable& links, std::uint64_t incarnation, std::string build,
       Keyring& keyring, schema::FramePool& pool, Log& log, MeshHooks hooks);
  ~Mesh();

  // Binds, connects, starts the receiving thread. Errors name the port and the next action.
  Status start();

  // --- the node's thread ---
  // Never blocks. Returns a peer that no longer takes anything, if there is one: kMaxWaitingFrames wait for it.
  std::optional<Seat> send(const std::vector<Seat>& to, const schema::SharedFrame& frame);
  void tick(std::uint64_t now_ms);  // hellos, frames that waited
  void forget_waiting();            // drops the frames of a run that ended
  void forget_waiting(Seat peer);   // that is no member any more
  // Silent links are dialled again: sooner between runs.
  // A port keeps its key while a start is being prepared.
  void set_in_run(bool in_run, bool prepares = false);
  void close(int linger_ms);  // closes the sending half

  // --- any thread ---
  const LinkTable& links() const;
  void stop_receiving();  // joins the receiving thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::daemon
