#include "daemon/node/peer_file.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {
namespace {

constexpr std::uint64_t kLookMs = 1000;

}  // namespace

PeerLineChanges::PeerLineChanges(const Per<Seat, schema::PeerAddress>& before,
                                 const Per<Seat, schema::PeerAddress>& after) {
  const auto note = [](std::string& to, const std::string& name) { to += (to.empty() ? "" : ",") + name; };
  for (const schema::PeerAddress& line : after) {
    const auto old = std::ranges::find(before, line.name, &schema::PeerAddress::name);
    if (old == before.end())
      note(added, line.name);
    else if (old->host != line.host || old->port != line.port)
      note(changed, line.name);
  }
  for (const schema::PeerAddress& line : before)
    if (std::ranges::count(after, line.name, &schema::PeerAddress::name) == 0) note(removed, line.name);
}

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
