#include "daemon/node/peer_file.h"

#include <utility>

namespace tg::daemon {
namespace {

constexpr std::uint64_t kLookMs = 1000;

}  // namespace

PeerFile::PeerFile(std::string path, Read read, EventQueue& queue)
    : path_(std::move(path)), read_(std::move(read)), queue_(queue) {}

void PeerFile::tick(std::uint64_t now_ms) {
  if (path_.empty() || now_ms < looked_ms_ + kLookMs || reader_.oldest_ms()) return;
  looked_ms_ = now_ms;
  reader_.post([this] {
    const FileStamp now = file_stamp(path_);
    if (now == stamp_) return;
    stamp_ = now;  // a bad file is reported once
    queue_.post(PeerLinesRead{read_()});
  });
}

}  // namespace tg::daemon
