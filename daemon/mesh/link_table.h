// The state of each link, shared by the two halves of the mesh, and the problems of links. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/access/name_watch.h"
#include "kernels/base/log.h"
#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxQueuedFrames = 65536;  // per peer
// A link that has been silent this long in one direction is redialled; during a run only after peer-timeout, if that is
// longer. Hellos, each with the number of the last hello received, are sent each second.
inline constexpr std::chrono::milliseconds kMaxLinkSilence{4000};

struct LinkProblem {
  std::string why;           // a sentence for users
  bool may_recover = false;  // a cable, a name or a process may come back; another build or key does not
  bool silent = false;       // all that is known is that no data arrives
};

// This node's identity, as its hellos state it.
struct MeshIdentity {
  MeshIdentity(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build);

  const schema::NodeConfig config;
  const std::uint64_t incarnation;
  const std::string build;
};

struct Link {
  using Time = std::chrono::steady_clock::time_point;
  std::atomic<bool> up{false};
  std::atomic<std::uint64_t> incarnation{0};     // from the peer's hello; 0 = no hello yet
  std::atomic<std::uint16_t> weight{1};          // from the peer's hello; 1 = no hello yet
  std::atomic<std::uint64_t> dials{0};           // counts our dials of the peer
  std::atomic<std::uint64_t> connection{0};      // number of our connection to the peer; 0 = not connected
  std::atomic<std::uint64_t> hello_sent{0};      // sequence of our last hello
  std::atomic<std::uint64_t> hellos_before{0};   // those up to here went to the address of an earlier peer line
  std::atomic<std::uint64_t> hello_received{0};  // sequence of the peer's last hello
  std::atomic<Time> received_at{Time()};         // when the peer's last frame arrived
  std::atomic<Time> echoed_at{Time()};           // when it last echoed a newer hello of ours
  std::atomic<bool> redial{false};               // our connection was refused or seems dead
  std::atomic<bool> rekeying{false};             // the link went down last because an end changes its key
  std::atomic<std::uint64_t> port_key{0};        // Keyring::fingerprint() of the peer's port key; 0 = none
  std::atomic<std::uint64_t> sent_bytes{0}, received_bytes{0};  // ZeroMQ framing included
};

class LinkTable {
 public:
  LinkTable(const schema::NodeConfig& config, Log& log);

  Link& operator[](Seat peer) { return links_[peer]; }
  const Link& operator[](Seat peer) const { return links_[peer]; }

  bool is_up(Seat seat) const { return seat == config_.seat() || links_[seat].up; }
  // Whether the link is up and neither direction has been silent for that long.
  bool is_responsive(Seat peer, std::chrono::milliseconds silence) const;
  std::uint16_t weight(Seat seat) const;
  std::uint64_t sent_bytes() const;  // the sum over all peers
  NameWatch& names() { return name_watch_; }

  // True while our mesh port is being bound with another key: no link is up until it is.
  std::atomic<bool> rebinding{false};
  // Counts of refused frames: malformed ones from peers, and all from unknown senders.
  std::atomic<std::uint64_t> malformed{0}, unknown_senders{0};

  void note_problem(Seat peer, const std::string& why, bool may_recover = false);
  // A peer's reason for refusing this node. A problem that this node has found itself takes precedence.
  void note_refusal(Seat peer, const std::string& why);
  // The name that the node at the peer's address reports. A wrong name takes precedence over other problems.
  void note_name(Seat peer, const std::string& name);
  // host:port that the peer's frames come from.
  void note_source(Seat peer, const std::string& from);
  void clear_problem(Seat peer);
  // The current problem of the link; no value if it is up and no other process claims the peer's name.
  std::optional<LinkProblem> problem(Seat peer) const;

 private:
  enum class Source : std::uint8_t { kReported, kOwn, kName };  // in ascending precedence
  struct Note {
    LinkProblem problem;
    Source source = Source::kReported;
    std::chrono::steady_clock::time_point at;
    bool is_current() const;
  };

  void record(Seat peer, Note note);

  const schema::NodeConfig config_;
  Log& log_;
  Per<Seat, Link> links_;
  NameWatch name_watch_;
  mutable std::mutex mutex_;
  std::map<Seat, Note> problems_;
  std::map<Seat, std::string> sources_;  // hosts
};

}  // namespace tg::daemon
