// The requests at the control port that have not been answered yet. Pure: events in, answers out; the control thread
// owns it.
//
//   call    start, stop, plan, ...: waits for the node's thread          answered by reply(token)
//           logs, fetch, delete: waits for the disk, or kDiskReplyMs     answered by reply(token)
//   gather  status: waits for every asked peer, or kPeerStatusMs          answered by the merged parts
//   survey  examine: waits for every node, this one included              answered by the diagnosis (daemon/doctor)
//   relay   logs, fetch, stop of another node, or kRelayReplyMs; resume   answered by its reply
//
// At most kMaxPendingRequests are pending; each has a deadline, and is answered once. A request to a peer carries the
// token as its id; only that peer's reply counts. The parts that gathers and surveys hold are bounded by
// kMaxGatheredBytes: above it no new ones are accepted, and a further part is as if its node had not answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/doctor/diagnose.h"
#include "schema/control/control.h"
#include "schema/limits.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxGatheredBytes = 64u << 20;
inline constexpr int kDiskReplyMs = schema::kRelayReplyMs - 500;  // before a relay ends
static_assert(16 * schema::kMaxControlBytes <= kMaxGatheredBytes, "16 nodes can send replies of the largest size");

struct Client {
  std::string identity;
  std::uint64_t request_id = 0;
};

struct Answer {
  Client client;
  schema::ReplyBody body;
};

struct PeerRequest {
  Seat peer;
  schema::Request request;
};

class PendingRequests {
 public:
  explicit PendingRequests(schema::NodeList names) : names_(std::move(names)) {}

  // Each returns the token; no value if too many requests are pending.
  std::optional<std::uint64_t> call(Client client, std::uint64_t now_ms);
  // Like a call, of this node's disk; it is late after kDiskReplyMs.
  std::optional<std::uint64_t> disk_call(Client client, std::uint64_t now_ms, std::string late);
  // own: the asked node's part. The caller reports a peer that cannot be asked by on_peer_unavailable().
  std::optional<std::uint64_t> gather(Client client, schema::StatusRequest asked, schema::MeshStatus own,
                                      const std::vector<Seat>& peers, std::uint64_t now_ms);
  // This node's part arrives by on_node_reply(), like a call's answer. survey: without parts.
  std::optional<std::uint64_t> survey(Client client, Survey survey, std::uint64_t now_ms);
  std::optional<std::uint64_t> relay(Client client, Seat peer, schema::RequestBody body, std::uint64_t now_ms);

  std::optional<Answer> on_node_reply(std::uint64_t token, schema::ReplyBody body);
  // bytes: the encoded size of the reply. arrived_ms: Unix time.
  std::optional<Answer> on_peer_reply(Seat peer, schema::Reply reply, std::size_t bytes = 0,
                                      std::int64_t arrived_ms = 0);
  // A gather or a survey continues without this peer.
  std::optional<Answer> on_peer_unavailable(std::uint64_t token, Seat peer);
  // Relays that could not be sent so far; a peer that has just restarted is connected within moments.
  std::vector<PeerRequest> unsent_relays() const;
  void mark_sent(std::uint64_t token);

  std::vector<Answer> take_expired(std::uint64_t now_ms);
  // The node is shutting down: answers all waiting clients with an error.
  std::vector<Answer> cancel_all(const std::string& why);
  std::size_t pending() const { return waiting_.size(); }
  std::size_t gathered_bytes() const { return gathered_bytes_; }

 private:
  struct NodeCall {
    std::string late = "the node did not answer in time; see its log";
  };
  struct Gather {
    schema::StatusRequest asked;
    schema::MeshStatus own;
    std::map<Seat, std::optional<schema::MeshStatus>> parts;  // the asked peers'
  };
  struct Relay {
    Seat peer;
    schema::RequestBody body;
    bool sent = false;
  };
  struct PendingSurvey {
    Survey survey;
    Per<Seat, bool> missing;
  };
  using Kind = std::variant<NodeCall, Gather, Relay, PendingSurvey>;
  struct Pending {
    Client client;
    std::uint64_t deadline_ms = 0;
    Kind kind;
    std::size_t outstanding = 0;  // nodes that a gather or a survey still waits for
    std::size_t bytes = 0;        // size of the parts that it holds
  };
  using Waiting = std::map<std::uint64_t, Pending>;

  std::optional<std::uint64_t> add(Client client, std::uint64_t deadline_ms, Kind kind, std::size_t outstanding,
                                   std::size_t bytes = 0);
  bool reserve(Pending& pending, std::size_t bytes);
  Answer finish(Waiting::iterator at, schema::ReplyBody body);
  Answer finish_gather(Waiting::iterator at);
  std::optional<Answer> add_part(Waiting::iterator at, const std::string& node, Part part);

  const schema::NodeList names_;
  std::uint64_t last_token_ = 0;
  Waiting waiting_;
  std::size_t gathered_bytes_ = 0;
};

}  // namespace tg::daemon
