// Everything asked of the control port and not yet answered. Pure: events in, answers out; the control thread owns it.
//
//   call    start, stop, plan, ...: waits for the node's thread          answered by reply(token)
//   gather  status: waits for every asked peer, or kPeerStatusMs         answered by the merged parts
//   survey  examine: waits for every asked node, the own one too          answered by the diagnosis (daemon/doctor)
//   relay   logs, fetch, stop of another: it, or kRelayReplyMs            answered by what it said
//
// At most kMaxPendingQuestions wait; every one has a deadline, and is answered once. A question asked of a peer
// carries the token as its id; only that peer's reply counts. What gathers and surveys hold until the last one answers
// has the bound kMaxGatheredBytes: above it no more are taken, and of a further part only the node itself is kept.
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
#include "schema/place.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxGatheredBytes = 64u << 20;
static_assert(16 * schema::kMaxControlBytes <= kMaxGatheredBytes, "16 nodes at once can say all that they may");

struct Client {
  std::string identity;
  std::uint64_t request_id = 0;
};

struct Answer {
  Client client;
  schema::ReplyBody body;
};

struct PeerQuestion {
  Seat peer;
  schema::Request request;
};

class Questions {
 public:
  explicit Questions(Per<Seat, std::string> names) : names_(std::move(names)) {}

  // Each returns the token, or nothing when too many questions are waiting already.
  std::optional<std::uint64_t> call(Client client, std::uint64_t now_ms);
  // `own`: the asked node's part. Call not_asked() for a peer that cannot be asked.
  std::optional<std::uint64_t> gather(Client client, schema::StatusRequest asked, schema::MeshStatus own,
                                      const std::vector<Seat>& peers, std::uint64_t now_ms);
  // Our own part comes by replied(), like a call's answer. survey: has no parts yet.
  std::optional<std::uint64_t> survey(Client client, Survey survey, std::uint64_t now_ms);
  std::optional<std::uint64_t> relay(Client client, Seat peer, schema::RequestBody body, std::uint64_t now_ms);

  std::optional<Answer> replied(std::uint64_t token, schema::ReplyBody body);
  // bytes: of the reply, as it came. arrived_ms: Unix time, as an examination's.
  std::optional<Answer> peer_replied(Seat peer, schema::Reply reply, std::size_t bytes = 0,
                                     std::int64_t arrived_ms = 0);
  // A gather or a survey goes on without this peer.
  std::optional<Answer> not_asked(std::uint64_t token, Seat peer);
  // Relays that have not been sent so far; a peer that has just restarted is connected within moments.
  std::vector<PeerQuestion> unsent() const;
  void sent(std::uint64_t token);

  std::vector<Answer> expired(std::uint64_t now_ms);
  // The node shuts down: all waiting clients are told so.
  std::vector<Answer> end(const std::string& why);
  std::size_t pending() const { return waiting_.size(); }
  std::size_t gathered_bytes() const { return gathered_bytes_; }

 private:
  struct Call {};
  struct Gather {
    schema::StatusRequest asked;
    schema::MeshStatus own;
    std::map<Seat, std::optional<schema::MeshStatus>> parts;  // of the asked peers
  };
  struct Relay {
    Seat peer;
    schema::RequestBody body;
    bool sent = false;
  };
  struct Surveying {
    Survey survey;
    Per<Seat, bool> missing;
  };
  using Kind = std::variant<Call, Gather, Relay, Surveying>;
  struct Question {
    Client client;
    std::uint64_t deadline_ms = 0;
    Kind kind;
    std::size_t outstanding = 0;  // nodes that a gather or a survey waits for
    std::size_t bytes = 0;        // of the parts that it holds
  };
  using Waiting = std::map<std::uint64_t, Question>;

  std::optional<std::uint64_t> add(Client client, std::uint64_t deadline_ms, Kind kind, std::size_t outstanding,
                                   std::size_t bytes = 0);
  bool hold(Question& question, std::size_t bytes);
  Answer finish(Waiting::iterator at, schema::ReplyBody body);
  Answer finish_gather(Waiting::iterator at);
  std::optional<Answer> take_part(Waiting::iterator at, Seat node, Part part);

  const Per<Seat, std::string> names_;
  std::uint64_t last_token_ = 0;
  Waiting waiting_;
  std::size_t gathered_bytes_ = 0;
};

}  // namespace tg::daemon
