// What the halves of the mesh know of each link, and what is wrong with it. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/access/io_threads.h"
#include "daemon/access/name_watch.h"
#include "kernels/base/log.h"
#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxWaitingFrames = 65536;  // for a connection to one peer
// A link that was up and has been silent this long in one direction is dialled again; during a run only after
// peer-timeout, if that is longer. Hellos, which say what was heard of ours, come each second.
inline constexpr std::chrono::milliseconds kMaxLinkSilence{4000};

struct LinkProblem {
  std::string why;             // names the peer or what it refuses; for people
  bool waiting_helps = false;  // a cable, a name or a process may come back; another build or key does not
  bool silence = false;        // no more is known than that nothing comes
};

// Who we are, as our hellos say.
struct MeshSelf {
  MeshSelf(const schema::NodeConfig& config, std::uint64_t incarnation, std::string build);

  const schema::NodeConfig config;
  const IoThreads io_threads;  // of the context
  const std::uint64_t incarnation;
  const std::string build;
  const std::string names;  // of all nodes
  const std::uint64_t names_hash;
};

struct Link {
  using Time = std::chrono::steady_clock::time_point;
  std::atomic<bool> up{false};
  std::atomic<std::uint64_t> incarnation{0};  // the peer's, from its hello; 0 = none came
  std::atomic<std::uint16_t> weight{1};       // the same; 1 as long as none came
  std::atomic<std::uint64_t> dials{0};        // of ours to the peer
  std::atomic<std::uint64_t> connection{0};   // counts our connections to the peer, 0 = none now
  std::atomic<std::uint64_t> said{0};         // sequence of our last hello
  std::atomic<std::uint64_t> heard_hello{0};  // sequence of the peer's last hello
  std::atomic<Time> heard_at{Time()};         // the peer's last frame came
  std::atomic<Time> echo_at{Time()};          // it told of a newer hello of ours
  std::atomic<bool> redial{false};            // our connection was refused, or only looks as if it stood
  std::atomic<bool> rekeys{false};            // it went down last for one of us gets another cluster key
  std::atomic<std::uint64_t> port_key{0};     // which key the peer's port has, by Keyring::mark(); 0 = none
  std::atomic<std::uint64_t> sent_bytes{0}, received_bytes{0};  // ZeroMQ framing included
};

class LinkTable {
 public:
  LinkTable(const schema::NodeConfig& config, Log& log);

  Link& operator[](Seat peer) { return links_[peer]; }
  const Link& operator[](Seat peer) const { return links_[peer]; }

  bool up(Seat seat) const { return seat == config_.seat() || links_[seat].up; }
  // Up, and in both directions it has not been silent for that long.
  bool hears(Seat peer, std::chrono::milliseconds silence) const;
  std::uint16_t weight(Seat seat) const;
  std::uint64_t sent_bytes() const;  // to all

  // Our mesh port is about to be bound with another key, and no link is up until it is.
  std::atomic<bool> between_keys{false};
  // Frames that were refused: malformed ones of peers, and of whoever is no peer.
  std::atomic<std::uint64_t> malformed{0}, strangers{0};

  void note_problem(Seat peer, const std::string& why, bool waiting_helps = false);
  // What a peer says against this node. What this node has found itself says more, and stays.
  void note_refusal(Seat peer, const std::string& why);
  // How the node at the peer's address calls itself. Another name says more than anything else.
  void note_name(Seat peer, const std::string& name);
  void forget_problem(Seat peer);
  // As far as this node knows; nothing where the link is up and nobody else claims the peer's name.
  std::optional<LinkProblem> problem(Seat peer) const;

 private:
  enum class Source : std::uint8_t { kTold, kOwn, kName };  // whoever is later says more
  struct Noted {
    LinkProblem problem;
    Source source = Source::kTold;
    std::chrono::steady_clock::time_point at;
    bool holds() const;
  };

  void note(Seat peer, Noted noted);

  const schema::NodeConfig config_;
  Log& log_;
  Per<Seat, Link> links_;
  NameWatch name_watch_;
  mutable std::mutex mutex_;
  std::map<Seat, Noted> problems_;
};

}  // namespace tg::daemon
