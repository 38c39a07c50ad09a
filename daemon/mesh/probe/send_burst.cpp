#include "daemon/mesh/probe/send_burst.h"

#include <vector>

namespace tg::daemon {

void send_burst(Mesh& mesh, schema::FramePool& pool, std::uint64_t key, const LinkProbe::Burst& burst) {
  const std::vector<std::byte> filler(burst.frame_bytes);
  for (std::size_t frame = 1; frame <= burst.frames_per_peer; ++frame) {
    const schema::Probe probe{burst.number, frame == burst.frames_per_peer, filler};
    const schema::SharedFrame bytes = schema::encode_frame({key, 0, 0}, probe, pool);
    for (const Seat peer : burst.peers) mesh.send({peer}, bytes);
  }
}

}  // namespace tg::daemon
