#include "daemon/mesh/link_table.h"

#include <algorithm>

#include "schema/text.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::milliseconds kProblemLifetime{5000};  // after the last report

}  // namespace

MeshIdentity::MeshIdentity(const schema::NodeConfig& c, std::uint64_t i, std::string b)
    : config(c), incarnation(i), build(std::move(b)) {}

LinkTable::LinkTable(const schema::NodeConfig& config, Log& log)
    : config_(config), log_(log), links_(config.nodes.kMaxNodes), name_watch_(config.nodes.hosts()) {}

bool LinkTable::is_responsive(Seat peer, std::chrono::milliseconds silence) const {
  const Link& link = links_[peer];
  const auto now = std::chrono::steady_clock::now();
  return link.up && now - link.received_at.load() < silence &&
         now - link.echoed_at.load() < std::max(silence, kMaxLinkSilence);
}

std::uint16_t LinkTable::weight(Seat seat) const {
  return seat == config_.seat() ? static_cast<std::uint16_t>(config_.weight) : links_[seat].weight.load();
}

std::uint64_t LinkTable::sent_bytes() const {
  std::uint64_t all = 0;
  for (const Link& link : links_) all += link.sent_bytes;
  return all;
}

// A refusal is repeated each second; an older one is out of date.
bool LinkTable::Note::is_current() const { return std::chrono::steady_clock::now() - at < kProblemLifetime; }

void LinkTable::note_problem(Seat peer, const std::string& why, bool may_recover) {
  record(peer, {{why, may_recover}, Source::kOwn, std::chrono::steady_clock::now()});
}

void LinkTable::note_refusal(Seat peer, const std::string& why) {
  record(peer, {{why, false}, Source::kReported, std::chrono::steady_clock::now()});
}

void LinkTable::note_name(Seat peer, const std::string& name) {
  const schema::PeerAddress line = config_.nodes.line(peer);
  if (name == line.name || links_[peer].up) return;
  const std::string called = "the node at " + schema::host_and_port(line.host, line.port) + " is called " + name;
  const std::string why =
      name == config_.node ? called + ", as this one is, not " + line.name + "; correct node = " + name + " in one file"
                           : called + ", not " + line.name + "; correct the peer line of " + line.name + " on " +
                                 config_.node + ", or node = " + name + " there";
  record(peer, {{why, false}, Source::kName, std::chrono::steady_clock::now()});
}

void LinkTable::record(Seat peer, Note note) {
  const std::lock_guard lock(mutex_);
  Note& known = problems_[peer];
  if (note.source < known.source && known.is_current()) return;
  if (known.problem.why != note.problem.why)
    log_.warning("link-problem", {{"peer", config_.nodes[peer]}, {"why", note.problem.why}});
  known = std::move(note);
}

void LinkTable::note_source(Seat peer, const std::string& from) {
  if (from.empty()) return;
  const std::lock_guard lock(mutex_);
  sources_[peer] = from.substr(0, from.rfind(':'));
}

void LinkTable::clear_problem(Seat peer) {
  const std::lock_guard lock(mutex_);
  problems_.erase(peer);
}

std::optional<LinkProblem> LinkTable::problem(Seat peer) const {
  if (peer == config_.seat()) return std::nullopt;
  std::string source;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = sources_.find(peer); known != sources_.end()) source = known->second;
    const auto found = problems_.find(peer);
    if (found != problems_.end() && found->second.is_current()) return found->second.problem;
  }
  const Link& link = links_[peer];
  if (link.up) return std::nullopt;
  const schema::PeerAddress address = config_.nodes.line(peer);
  if (const std::string unresolved = name_watch_.problem(address.host); !unresolved.empty())
    return LinkProblem{unresolved, true};
  const std::string port = schema::host_and_port(address.host, address.port);
  const bool heard = std::chrono::steady_clock::now() - link.received_at.load() < kMaxLinkSilence;
  if (link.connection == 0 && heard && !source.empty() && !name_watch_.has_address(address.host, source))
    return LinkProblem{"it connects from " + source + ", and nothing answers at " + port + ", its peer line on " +
                           config_.node + "; correct that line if its address has changed",
                       true};
  if (link.connection == 0) return LinkProblem{"its mesh port " + port + " cannot be reached", true, true};
  const schema::PeerAddress& own = config_.self();
  return LinkProblem{"it does not reach the mesh port of " + own.name + ", " +
                         schema::host_and_port(own.host, own.port) + " in its peer lines",
                     true, true};
}

}  // namespace tg::daemon
