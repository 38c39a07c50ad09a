// Reads the configuration file again when it changes, once a second: its peer lines are taken up while the node runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/access/file_stamp.h"
#include "daemon/node/event_queue.h"
#include "daemon/step/threads/job_queue.h"
#include "kernels/base/status.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

// The nodes whose lines differ: "node-c,node-d".
struct PeerLineChanges {
  PeerLineChanges(const Per<Seat, schema::PeerAddress>& before, const Per<Seat, schema::PeerAddress>& after);
  bool empty() const { return added.empty() && removed.empty() && changed.empty(); }

  std::string added, removed, changed;
};

class PeerFile {
 public:
  // read: the whole configuration, as at the start of the process.
  using Read = std::function<Result<schema::NodeConfig>()>;
  // path: "" = there is no file, and nothing changes.
  PeerFile(std::string path, Read read, EventQueue& queue);

  void tick(std::uint64_t now_ms);  // posts PeerLinesRead to the queue; waits for no disk

 private:
  const std::string path_;
  const Read read_;
  EventQueue& queue_;
  std::uint64_t looked_ms_ = 0;
  FileStamp stamp_;  // the reader's; none: the file may have changed since the process read it
  JobQueue reader_;
};

}  // namespace tg::daemon
