#include "daemon/mesh/mesh.h"

#include <zmq.hpp>

#include "daemon/mesh/inbound.h"
#include "daemon/mesh/outbound.h"

namespace tg::daemon {

struct Mesh::State {
  State(const schema::NodeConfig& config, LinkTable& known, std::uint64_t incarnation, std::string build,
        Keyring& keyring, schema::FramePool& pool, Log& log, MeshHooks hooks)
      : self(config, incarnation, std::move(build)),
        links(known),
        outbound(self, links, context, keyring, pool, log),
        inbound(self, links, context, keyring, pool, log, std::move(hooks), outbound) {}

  const MeshIdentity self;
  LinkTable& links;
  zmq::context_t context;
  Outbound outbound;
  Inbound inbound;
};

Mesh::Mesh(const schema::NodeConfig& config, LinkTable& links, std::uint64_t incarnation, std::string build,
           Keyring& keyring, schema::FramePool& pool, Log& log, MeshHooks hooks)
    : state_(std::make_unique<State>(config, links, incarnation, std::move(build), keyring, pool, log,
                                     std::move(hooks))) {}

Mesh::~Mesh() {
  stop_receiving();
  close(0);
}

Status Mesh::start() {
  try {
    if (Status bound = state_->inbound.bind(); !bound.ok()) return bound;
    state_->outbound.dial_all();
  } catch (const zmq::error_t& error) {
    return Error{ErrorKind::kIo, "cannot set up the mesh sockets: " + std::string(error.what()) +
                                     "; raise the limit of open files (ulimit -n)?"};
  }
  state_->inbound.start();
  return {};
}

std::optional<Seat> Mesh::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  return state_->outbound.send(to, frame);
}

void Mesh::tick(std::uint64_t now_ms) { state_->outbound.tick(now_ms); }
void Mesh::drop_queued() { state_->outbound.drop_queued(); }
void Mesh::drop_queued(Seat peer) { state_->outbound.drop_queued(peer); }
void Mesh::close(int linger_ms) { state_->outbound.close(linger_ms); }
void Mesh::set_run_phase(bool in_run, bool prepares) { state_->inbound.set_run_phase(in_run, prepares); }
void Mesh::stop_receiving() {
  state_->outbound.stop_events();  // inbound takes them
  state_->inbound.stop();
}

const LinkTable& Mesh::links() const { return state_->links; }

}  // namespace tg::daemon
