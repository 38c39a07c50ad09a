#include "daemon/control/pending_requests.h"

#include <utility>

#include "daemon/control/merge.h"
#include "schema/limits.h"

namespace tg::daemon {

using schema::MeshStatus;
using schema::ReplyBody;

namespace {

// The approximate memory of a status.
std::size_t bytes_of(const MeshStatus& status) {
  std::size_t bytes = sizeof status + status.nodes.size() * sizeof(schema::NodeStatus);
  for (const schema::RunStatus& run : status.runs)
    bytes += sizeof run + run.reason.size() + run.members.size() * sizeof(schema::MemberStatus) +
             run.departed.size() * sizeof(schema::Departure);
  return bytes;
}

}  // namespace

std::optional<std::uint64_t> PendingRequests::add(Client client, std::uint64_t deadline_ms, Kind kind,
                                                  std::size_t outstanding, std::size_t bytes) {
  if (waiting_.size() >= schema::kMaxPendingRequests) return std::nullopt;
  Pending pending{std::move(client), deadline_ms, std::move(kind), outstanding};
  if (!reserve(pending, bytes)) return std::nullopt;
  const std::uint64_t token = ++last_token_;
  waiting_.emplace(token, std::move(pending));
  return token;
}

bool PendingRequests::reserve(Pending& pending, std::size_t bytes) {
  if (bytes > 0 && gathered_bytes_ + bytes > kMaxGatheredBytes) return false;
  pending.bytes += bytes;
  gathered_bytes_ += bytes;
  return true;
}

std::optional<std::uint64_t> PendingRequests::call(Client client, std::uint64_t now_ms) {
  return add(std::move(client), now_ms + schema::kMaxCallMs, NodeCall{}, 0);
}

std::optional<std::uint64_t> PendingRequests::disk_call(Client client, std::uint64_t now_ms, std::string late) {
  return add(std::move(client), now_ms + kDiskReplyMs, NodeCall{std::move(late)}, 0);
}

std::optional<std::uint64_t> PendingRequests::gather(Client client, schema::StatusRequest asked, MeshStatus own,
                                                     const std::vector<Seat>& peers, std::uint64_t now_ms) {
  const std::size_t bytes = bytes_of(own);
  Gather gather{std::move(asked), std::move(own), {}};
  for (const Seat peer : peers) gather.parts[peer];
  const std::size_t outstanding = gather.parts.size();
  return add(std::move(client), now_ms + schema::kPeerStatusMs, std::move(gather), outstanding, bytes);
}

std::optional<std::uint64_t> PendingRequests::survey(Client client, Survey survey, std::uint64_t now_ms) {
  const std::size_t nodes = survey.names.size();
  survey.parts.resize(nodes);
  for (Part& part : survey.parts) part.silence = "it does not answer";
  const int most_ms = schema::examine_ms(nodes, survey.seconds) + schema::kExamineGraceMs + schema::kPeerStatusMs;
  return add(std::move(client), now_ms + static_cast<std::uint64_t>(most_ms),
             PendingSurvey{std::move(survey), Per<Seat, bool>(nodes, true)}, nodes);
}

std::optional<std::uint64_t> PendingRequests::relay(Client client, Seat peer, schema::RequestBody body,
                                                    std::uint64_t now_ms) {
  const bool resumes = std::holds_alternative<schema::ResumeRequest>(body);  // a call there
  return add(std::move(client), now_ms + (resumes ? schema::kMaxCallMs : schema::kRelayReplyMs),
             Relay{peer, std::move(body)}, 1);
}

Answer PendingRequests::finish(Waiting::iterator at, ReplyBody body) {
  Answer answer{std::move(at->second.client), std::move(body)};
  gathered_bytes_ -= at->second.bytes;
  waiting_.erase(at);
  return answer;
}

Answer PendingRequests::finish_gather(Waiting::iterator at) {
  Gather& gather = std::get<Gather>(at->second.kind);
  std::vector<MeshStatus> answers;
  for (auto& [peer, part] : gather.parts) {
    if (part) answers.push_back(std::move(*part));
  }
  ReplyBody body = select_run(merge_statuses(std::move(gather.own), answers), gather.asked);
  return finish(at, std::move(body));
}

// Adds a node's part. A node that refuses to be examined gives its reason; a refusal by the asked node ends the survey.
std::optional<Answer> PendingRequests::add_part(Waiting::iterator at, const std::string& node, Part part) {
  auto& [survey, missing] = std::get<PendingSurvey>(at->second.kind);
  const std::optional<Seat> row = survey.names.place_of(node);
  if (!row || !missing[*row]) return std::nullopt;
  missing[*row] = false;
  survey.parts[*row] = std::move(part);
  if (--at->second.outstanding > 0) return std::nullopt;
  return finish(at, diagnose(survey));
}

namespace {

Part part_of(ReplyBody& body, const std::string& name, std::int64_t arrived_ms) {
  auto* examination = std::get_if<schema::Examination>(&body);
  if (examination != nullptr && examination->node == name) return {std::move(*examination), arrived_ms, ""};
  const Error* error = std::get_if<Error>(&body);
  return {std::nullopt, arrived_ms, error != nullptr ? error->message : "another node answers at its address"};
}

}  // namespace

std::optional<Answer> PendingRequests::on_node_reply(std::uint64_t token, ReplyBody body) {
  const auto at = waiting_.find(token);
  if (at == waiting_.end()) return std::nullopt;
  if (const auto* survey_state = std::get_if<PendingSurvey>(&at->second.kind)) {
    if (std::holds_alternative<Error>(body)) return finish(at, std::move(body));
    const std::string self = survey_state->survey.names[survey_state->survey.self];
    return add_part(at, self, part_of(body, self, 0));
  }
  if (!std::holds_alternative<NodeCall>(at->second.kind)) return std::nullopt;
  return finish(at, std::move(body));
}

std::optional<Answer> PendingRequests::on_peer_reply(Seat peer, schema::Reply reply, std::size_t bytes,
                                                     std::int64_t arrived_ms) {
  const auto at = waiting_.find(reply.id);
  if (at == waiting_.end()) return std::nullopt;
  if (const Relay* relay = std::get_if<Relay>(&at->second.kind)) {
    if (relay->peer != peer) return std::nullopt;
    if (!std::holds_alternative<schema::SliceReply>(reply.body) &&
        !std::holds_alternative<schema::DoneReply>(reply.body) &&
        !std::holds_alternative<schema::StopReply>(reply.body) &&
        !std::holds_alternative<schema::StartReply>(reply.body) && !std::holds_alternative<Error>(reply.body)) {
      return std::nullopt;
    }
    return finish(at, std::move(reply.body));
  }
  if (std::holds_alternative<PendingSurvey>(at->second.kind)) {
    if (!reserve(at->second, bytes))
      reply.body = Error{ErrorKind::kRefused, "too many requests are pending; ask again"};
    return add_part(at, names_[peer], part_of(reply.body, names_[peer], arrived_ms));
  }
  Gather* gather = std::get_if<Gather>(&at->second.kind);
  if (gather == nullptr) return std::nullopt;
  const auto part = gather->parts.find(peer);
  if (part == gather->parts.end() || part->second) return std::nullopt;
  MeshStatus* status = std::get_if<MeshStatus>(&reply.body);
  // A reply under another name is not from the node of that peer line.
  if (status == nullptr || status->node != names_[peer]) return on_peer_unavailable(reply.id, peer);
  if (!reserve(at->second, bytes)) return on_peer_unavailable(reply.id, peer);  // the others have most of it too
  part->second = std::move(*status);
  if (--at->second.outstanding > 0) return std::nullopt;
  return finish_gather(at);
}

std::optional<Answer> PendingRequests::on_peer_unavailable(std::uint64_t token, Seat peer) {
  const auto at = waiting_.find(token);
  if (at == waiting_.end()) return std::nullopt;
  if (std::holds_alternative<PendingSurvey>(at->second.kind))
    return add_part(at, names_[peer], {std::nullopt, 0, "its control port cannot be reached"});
  Gather* gather = std::get_if<Gather>(&at->second.kind);
  if (gather == nullptr) return std::nullopt;
  const auto part = gather->parts.find(peer);
  if (part == gather->parts.end() || part->second) return std::nullopt;
  gather->parts.erase(part);
  if (--at->second.outstanding > 0) return std::nullopt;
  return finish_gather(at);
}

std::vector<PeerRequest> PendingRequests::unsent_relays() const {
  std::vector<PeerRequest> all;
  for (const auto& [token, pending] : waiting_) {
    const Relay* relay = std::get_if<Relay>(&pending.kind);
    if (relay != nullptr && !relay->sent) all.push_back({relay->peer, {token, relay->body}});
  }
  return all;
}

void PendingRequests::mark_sent(std::uint64_t token) {
  const auto at = waiting_.find(token);
  if (at == waiting_.end()) return;
  if (Relay* relay = std::get_if<Relay>(&at->second.kind)) relay->sent = true;
}

std::vector<Answer> PendingRequests::take_expired(std::uint64_t now_ms) {
  std::vector<Answer> answers;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (now_ms >= at->second.deadline_ms) {
      if (std::holds_alternative<Gather>(at->second.kind)) {
        answers.push_back(finish_gather(at));
      } else if (const auto* survey_state = std::get_if<PendingSurvey>(&at->second.kind)) {
        answers.push_back(finish(at, diagnose(survey_state->survey)));
      } else if (const Relay* relay = std::get_if<Relay>(&at->second.kind)) {
        answers.push_back(finish(at, Error{ErrorKind::kUnreachable, names_[relay->peer] + " does not answer"}));
      } else {
        const std::string late = std::get<NodeCall>(at->second.kind).late;
        answers.push_back(finish(at, Error{ErrorKind::kTimeout, late}));
      }
    }
    at = next;
  }
  return answers;
}

std::vector<Answer> PendingRequests::cancel_all(const std::string& why) {
  std::vector<Answer> answers;
  while (!waiting_.empty()) answers.push_back(finish(waiting_.begin(), Error{ErrorKind::kUnreachable, why}));
  return answers;
}

}  // namespace tg::daemon
