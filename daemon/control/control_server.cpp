#include "daemon/control/control_server.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "daemon/control/control_sockets.h"
#include "daemon/control/merge.h"
#include "daemon/control/pending_requests.h"
#include "daemon/step/threads/job_queue.h"
#include "kernels/base/log_throttle.h"
#include "kernels/base/now.h"
#include "schema/limits.h"

namespace tg::daemon {

namespace {

using schema::MeshStatus;
using schema::NodeConfig;
using schema::ReplyBody;

constexpr std::uint64_t kProbeNamesMs = 1000;
constexpr std::uint64_t kReportViewMs = 1000;

bool is_read_only(const schema::RequestBody& body) {
  // Measuring links saturates them.
  if (const auto* examine = std::get_if<schema::ExamineRequest>(&body)) return examine->seconds == 0;
  return std::holds_alternative<schema::StatusRequest>(body) || std::holds_alternative<schema::LogsRequest>(body) ||
         std::holds_alternative<schema::FetchRequest>(body) || std::holds_alternative<schema::VersionRequest>(body);
}

struct Watch {               // a request of the node's thread to watch a run
  std::uint64_t number = 0;  // counts the requests; 0 = none so far
  std::string run_id;        // "" = no run
  std::uint64_t step_timeout_ms = 0;
  Per<Seat, bool> members;  // empty = all
  Lineage lineage = {};     // key 0 = the run has not begun
  std::string ended_run = {};

  bool has(Seat seat) const { return members.empty() || members[seat]; }
};

struct NodeReply {
  std::uint64_t token = 0;
  ReplyBody body;
};

}  // namespace

struct ControlServer::State {
  State(const NodeConfig& node_config, std::uint64_t own_incarnation, std::string own_build, Keyring& own_keyring,
        RunStore& run_store, Progress& own_progress, Log& own_log, Hooks own_hooks);

  // The control thread.
  void loop();
  void take_updates();
  void on_client_message(const ClientMessage& message);
  void on_peer_message(Seat peer, const std::string& bytes);
  void handle(const Client& client, const schema::StatusRequest& request);
  void handle(const Client& client, schema::StartRequest request) { forward_to_node(client, std::move(request)); }
  void handle(const Client& client, schema::StopRequest request);
  void handle(const Client& client, schema::LeaveRequest request);
  void handle(const Client& client, schema::ResumeRequest request) {
    if (!relayed(client, request)) forward_to_node(client, std::move(request));
  }
  void handle(const Client& client, const schema::Obsolete&) {
    answer(client, Error{ErrorKind::kUsage, config.node + " does not know this request; its tgd is newer than tgctl"});
  }
  void handle(const Client& client, schema::ForecastRequest request) { forward_to_node(client, std::move(request)); }
  void handle(const Client& client, schema::MisclassificationsRequest request) {
    forward_to_node(client, std::move(request));
  }
  void handle(const Client& client, const schema::ExamineRequest& request);
  void handle(const Client& client, schema::LogsRequest request);
  void handle(const Client& client, schema::FetchRequest request);
  void handle(const Client& client, schema::DeleteRequest request);
  void handle(const Client& client, schema::FetchedRequest request);
  void handle(const Client& client, schema::VersionRequest request);
  void handle(const Client& client, const schema::Heartbeat& beat);
  bool is_impostor(const schema::Heartbeat& beat) const;
  void reply(std::uint64_t token, ReplyBody body);
  template <class Job>
  void on_disk(const Client& client, Job job);
  std::vector<std::string> nodes_elsewhere(const std::string& run) const;
  std::string vote_needed_text(const std::string& run, const std::vector<std::string>& elsewhere) const;
  std::string unfinished_run(Seat seat, const std::vector<schema::RunStatus>& runs) const;
  std::string forbidden_reason(const User& user, const schema::RequestBody& body) const;
  void forward_to_node(const Client& client, schema::RequestBody body);
  template <class SliceRequest>
  void slice(const Client& client, SliceRequest request, const std::string& file, std::size_t most_bytes);
  void relay(const Client& client, const std::string& node, schema::RequestBody body);
  // Relays a request for another node; false if it is for this one.
  template <class Request>
  bool relayed(const Client& client, Request& request) {
    const std::string node = std::exchange(request.node, "");
    if (node.empty() || node == config.node) return false;
    relay(client, node, std::move(request));
    return true;
  }
  void send_relays();
  void send_heartbeats(std::uint64_t now_ms);
  void probe_names(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);
  MeshStatus own_status();
  void add_refusals(schema::Examination& own) const;
  void answer(const Client& client, ReplyBody body);
  void answer(std::optional<Answer> ready);
  Error busy() const {
    return {ErrorKind::kRefused, "too many requests are waiting at " + config.node + " already; ask again later"};
  }
  void refuse(const Client& client) { answer(client, busy()); }
  void log_bad(const std::string& from, const std::string& what);
  std::string own_problem() const;
  std::string read_progress() const;

  const NodeConfig config;
  const schema::NodeList names;
  const Seat self;
  const std::uint64_t incarnation;
  const std::string build;
  const std::uint64_t heartbeat_ms;
  Keyring& keyring;
  RunStore& store;
  Progress& progress;
  Log& log;
  const Hooks hooks;

  // Owned by the control thread.
  std::unique_ptr<ControlSockets> sockets;
  Liveness liveness;
  Per<Seat, std::string> runs_of_peers;       // from their last heartbeats; "" = no run
  Per<Seat, std::uint64_t> view_reported_ms;  // when on_stale_view was called last
  PendingRequests requests;
  Watch watching;
  std::uint64_t names_probed_ms = 0;
  LogThrottle throttle;

  // Set by any thread.
  Per<Seat, std::atomic<bool>> mesh_traffic;  // a frame costs a store, not a wake-up
  Per<Seat, std::atomic<bool>> reached;       // set by the control thread
  std::atomic<bool> ending{false};
  std::atomic<std::uint64_t> turns{0};  // set by the control thread
  std::mutex mutex;
  Watch wanted;                    // guarded by mutex
  std::vector<NodeReply> replies;  // guarded by mutex

  std::optional<JobQueue> disk;  // reads, marks and deletes files, so that the control thread waits for none
  std::thread thread;
};

ControlServer::State::State(const NodeConfig& node_config, std::uint64_t own_incarnation, std::string own_build,
                            Keyring& own_keyring, RunStore& run_store, Progress& own_progress, Log& own_log,
                            Hooks own_hooks)
    : config(node_config),
      names(node_config.nodes),
      self(node_config.seat()),
      incarnation(own_incarnation),
      build(std::move(own_build)),
      heartbeat_ms(std::clamp<std::uint64_t>(node_config.peer_timeout_ms / 10, 1, schema::kMaxHeartbeatMs)),
      keyring(own_keyring),
      store(run_store),
      progress(own_progress),
      log(own_log),
      hooks(std::move(own_hooks)),
      liveness({names, self, node_config.peer_timeout_ms}),
      runs_of_peers(names.kMaxNodes),
      view_reported_ms(names.kMaxNodes, 0),
      requests(names),
      mesh_traffic(names.kMaxNodes),
      reached(names.kMaxNodes) {}

// --- any thread ---

bool ControlServer::is_up(Seat peer) const { return state_->reached[peer]; }

ControlServer::ControlServer(const NodeConfig& config, std::uint64_t incarnation, std::string build, Keyring& keyring,
                             RunStore& store, Progress& progress, Log& log, Hooks hooks)
    : state_(std::make_unique<State>(config, incarnation, std::move(build), keyring, store, progress, log,
                                     std::move(hooks))) {}

ControlServer::~ControlServer() {
  if (!state_->thread.joinable()) return;
  state_->ending = true;
  state_->sockets->wake();
  state_->thread.join();
  state_->disk.reset();
  // Destroyed last, since wake() above uses them. The last replies have kControlLingerMs to leave.
  state_->sockets.reset();
}

Status ControlServer::start() {
  Result<std::unique_ptr<ControlSockets>> sockets = ControlSockets::open(state_->config, state_->keyring, state_->log);
  if (!sockets) return sockets.error();
  state_->sockets = std::move(*sockets);
  state_->disk.emplace();
  state_->thread = std::thread([this] { state_->loop(); });
  return {};
}

void ControlServer::reply(std::uint64_t token, ReplyBody body) { state_->reply(token, std::move(body)); }

void ControlServer::State::reply(std::uint64_t token, ReplyBody body) {
  {
    const std::lock_guard lock(mutex);
    // No more requests than these can be pending.
    if (replies.size() >= schema::kMaxPendingRequests) return;
    replies.push_back({token, std::move(body)});
  }
  if (sockets) sockets->wake();
}

void ControlServer::on_mesh_traffic(Seat peer) {
  if (peer.index() < state_->mesh_traffic.size()) state_->mesh_traffic[peer].store(true, std::memory_order_relaxed);
}

void ControlServer::watch(const std::string& run_id, std::uint64_t step_timeout_ms, const Per<Seat, bool>& members,
                          Lineage lineage) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->wanted = {state_->wanted.number + 1, run_id, step_timeout_ms, members, std::move(lineage), ""};
  }
  if (state_->sockets) state_->sockets->wake();
}

void ControlServer::set_step_timeout(std::uint64_t step_timeout_ms) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted.step_timeout_ms = step_timeout_ms;
}

void ControlServer::unwatch() { watch("", 0); }

void ControlServer::show_ended(const std::string& run_id, Lineage lineage) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted = {state_->wanted.number + 1, "", 0, {}, std::move(lineage), run_id};
}

std::uint64_t ControlServer::turns() const { return state_->turns; }

// --- the control thread ---

void ControlServer::State::loop() {
  std::uint64_t next_heartbeat_ms = steady_ms(), next_tick_ms = next_heartbeat_ms;
  while (true) {
    const std::uint64_t due_ms = std::min(next_heartbeat_ms, next_tick_ms), before_ms = steady_ms();
    sockets->wait(due_ms > before_ms ? due_ms - before_ms : 0);
    ++turns;
    take_updates();
    if (ending) break;
    for (int i = 0; i < schema::kMaxMessagesPerTurn; ++i) {
      const std::optional<ClientMessage> message = sockets->receive_client();
      if (!message) break;
      on_client_message(*message);
    }
    for (const Seat peer : names.places()) {
      for (int i = 0; i < schema::kMaxMessagesPerTurn; ++i) {
        const std::optional<std::string> bytes = sockets->receive_peer(peer);
        if (!bytes) break;
        on_peer_message(peer, *bytes);
      }
    }
    send_relays();
    sockets->tick();
    const std::uint64_t now_ms = steady_ms();
    if (now_ms >= next_heartbeat_ms) {
      send_heartbeats(now_ms);
      next_heartbeat_ms = now_ms + heartbeat_ms;
    }
    if (now_ms >= next_tick_ms) {
      tick(now_ms);
      next_tick_ms = now_ms + schema::kLivenessTickMs;
    }
  }
  for (Answer& last : requests.cancel_all(config.node + " is shutting down")) answer(std::move(last));
}

// Applies what the other threads have left for this one.
void ControlServer::State::take_updates() {
  std::vector<NodeReply> taken;
  Watch now_wanted;
  {
    const std::lock_guard lock(mutex);
    taken.swap(replies);
    now_wanted = wanted;
  }
  for (NodeReply& reply : taken) {
    if (auto* own = std::get_if<schema::Examination>(&reply.body)) add_refusals(*own);
    answer(requests.on_node_reply(reply.token, std::move(reply.body)));
  }
  if (now_wanted.number != watching.number) {
    if (now_wanted.run_id.empty()) {
      liveness.unwatch();
    } else {
      liveness.watch(now_wanted.run_id, now_wanted.step_timeout_ms, steady_ms(), now_wanted.members);
    }
  } else if (now_wanted.step_timeout_ms != watching.step_timeout_ms) {
    liveness.set_step_timeout(now_wanted.step_timeout_ms);
  }
  const bool another_run = now_wanted.run_id != watching.run_id;
  watching = std::move(now_wanted);
  if (another_run) send_heartbeats(steady_ms());  // tells the peers at once which run this node is in
}

void ControlServer::State::on_client_message(const ClientMessage& message) {
  if (!message.well_formed) return log_bad(message.address, "not one part");
  Result<schema::Request> request = schema::decode_request(std::as_bytes(std::span(message.bytes)));
  if (!request) {
    log_bad(message.address, request.error().message);
    // Its id cannot be trusted either, so the answer has none; a tgctl of another version still learns the cause.
    return answer({message.identity, 0},
                  Error{ErrorKind::kCorrupt,
                        config.node + " (tgd " + build + ") cannot read the request: " + request.error().message});
  }
  const Client client{message.identity, request->id};
  if (const auto* beat = std::get_if<schema::Heartbeat>(&request->body); beat && !message.user.may_act_as(beat->node))
    return log_bad(message.address, "a heartbeat of " + beat->node + " with the key of " + format_user(message.user));
  else if (beat && is_impostor(*beat))
    return log_bad(message.address, "a heartbeat of a second " + beat->node + "; do two nodes have this name?");
  if (const std::string forbidden = forbidden_reason(message.user, request->body); !forbidden.empty())
    return answer(client, Error{ErrorKind::kForbidden, config.node + ": " + forbidden});
  std::visit([&](auto& body) { handle(client, std::move(body)); }, request->body);
}

// Whether a heartbeat is from another process than that of the peer's mesh link, which is up.
bool ControlServer::State::is_impostor(const schema::Heartbeat& beat) const {
  const std::optional<Seat> peer = names.listed(beat.node);
  if (!peer || !hooks.link) return false;
  const LinkView link = hooks.link(*peer);
  return link.up && link.incarnation != 0 && link.incarnation != beat.incarnation;
}

std::string ControlServer::State::forbidden_reason(const User& user, const schema::RequestBody& body) const {
  if (user.kind == User::Kind::kOperator && user.rights == schema::Rights::kRead && !is_read_only(body))
    return "operator " + user.name +
           " may only read (status, logs, fetch, doctor --no-bandwidth); ask for a key with full rights";
  return "";
}

void ControlServer::State::on_peer_message(Seat peer, const std::string& bytes) {
  Result<schema::Reply> reply = schema::decode_reply(std::as_bytes(std::span(bytes)));
  if (!reply) return log_bad(names[peer], reply.error().message);
  if (const auto* version = std::get_if<schema::VersionReply>(&reply->body)) {
    if (hooks.on_name) hooks.on_name(peer, version->node);
    if (version->node != names[peer]) return;
  }
  liveness.on_data(peer, steady_ms());
  answer(requests.on_peer_reply(peer, std::move(*reply), bytes.size(), unix_time_ms()));
}

void ControlServer::State::handle(const Client& client, const schema::StatusRequest& request) {
  MeshStatus own = own_status();
  if (request.local) return answer(client, select_prefix(std::move(own), request.run));
  const std::vector<Seat> peers = names.places_where([this](Seat peer) { return peer != self; });
  if (peers.empty()) return answer(client, select_run(merge_statuses(std::move(own), {}), request));
  const auto token = requests.gather(client, request, std::move(own), peers, steady_ms());
  if (!token) return refuse(client);
  const std::string bytes = schema::encode_request({*token, schema::StatusRequest{request.run, true}});
  for (const Seat peer : peers) {
    if (!sockets->send_peer(peer, bytes)) answer(requests.on_peer_unavailable(*token, peer));
  }
}

void ControlServer::State::handle(const Client& client, const schema::ExamineRequest& request) {
  if (request.local) return forward_to_node(client, request);
  Survey survey;
  survey.seconds = request.seconds;
  survey.line_mbps = request.line_mbps;
  for (const schema::PeerAddress& line : names.lines()) survey.names.push_back(line.name);
  survey.self = survey.names.place_of(config.node).value();
  const auto token = requests.survey(client, std::move(survey), steady_ms());
  if (!token) return refuse(client);
  schema::ExamineRequest one = request;
  one.local = true;
  one.asked_ms = unix_time_ms();
  const std::string bytes = schema::encode_request({*token, one});
  // A connection may look alive while nothing arrives on it.
  const std::uint64_t now_ms = steady_ms();
  for (const Seat peer : names.places())
    if (peer != self && (!liveness.is_alive(peer, now_ms) || !sockets->send_peer(peer, bytes)))
      answer(requests.on_peer_unavailable(*token, peer));
  hooks.on_call({*token, one});
}

void ControlServer::State::add_refusals(schema::Examination& own) const {
  for (schema::LinkFacts& link : own.links)
    if (const std::optional<Seat> peer = names.listed(link.peer); peer && *peer != self)
      link.refusal = sockets->refusal(*peer);
}

void ControlServer::State::handle(const Client& client, schema::LogsRequest request) {
  slice(client, std::move(request), "log.txt", schema::kLogSliceBytes);
}

void ControlServer::State::handle(const Client& client, schema::FetchRequest request) {
  const std::string file = request.file;
  slice(client, std::move(request), file, schema::kFileSliceBytes);
}

void ControlServer::State::handle(const Client& client, schema::StopRequest request) {
  if (!relayed(client, request)) forward_to_node(client, std::move(request));
}

void ControlServer::State::handle(const Client& client, schema::LeaveRequest request) {
  if (!relayed(client, request)) forward_to_node(client, std::move(request));
}

// Answers with what the job returns, which runs on the disk's thread.
template <class Job>
void ControlServer::State::on_disk(const Client& client, Job job) {
  const auto token = requests.disk_call(client, steady_ms(), "the disk of " + config.node + " did not answer in time");
  if (!token) return refuse(client);
  if (!disk->post([this, token = *token, job = std::move(job)] { reply(token, job()); }))
    answer(requests.on_node_reply(*token, busy()));
}

// The nodes that are up and not in that run.
std::vector<std::string> ControlServer::State::nodes_elsewhere(const std::string& run) const {
  std::vector<std::string> nodes;
  for (const Seat seat : names.places())
    if (liveness.is_alive(seat, steady_ms()) && runs_of_peers[seat] != run) nodes.push_back(names[seat]);
  return nodes;
}

// Why this node's vote in an interrupted run may be needed; "" if no member can be PAUSED in it. The disk's thread.
std::string ControlServer::State::vote_needed_text(const std::string& run,
                                                   const std::vector<std::string>& elsewhere) const {
  std::vector<std::string> in_doubt = store.voters_in_doubt(run);
  std::erase_if(in_doubt, [&](const std::string& node) {
    return !names.listed(node) || std::ranges::count(elsewhere, node) > 0;
  });
  if (in_doubt.empty()) return "";
  const std::string doubtful = schema::joined(in_doubt);
  return doubtful + " may be PAUSED in run " + run + " and need the vote of " + config.node + "; when " + doubtful +
         " is back: tgctl stop " + run + "; if it is gone for good: tgctl resume " + run + " --without " + in_doubt[0] +
         ", then tgctl stop " + run;
}

void ControlServer::State::handle(const Client& client, schema::DeleteRequest request) {
  if (relayed(client, request)) return;
  on_disk(client, [this, run = request.run, elsewhere = nodes_elsewhere(request.run)]() -> ReplyBody {
    if (const std::string needed = vote_needed_text(run, elsewhere); !needed.empty())
      return Error{ErrorKind::kRefused, needed};
    const Result<std::uint64_t> freed = store.remove(run);
    if (!freed) return freed.error();
    log.info("run-deleted", {{"run", run}, {"why", "tgctl delete"}, {"bytes", *freed}});
    return schema::DoneReply{run, config.node, *freed};
  });
}

void ControlServer::State::handle(const Client& client, schema::FetchedRequest request) {
  if (relayed(client, request)) return;
  on_disk(client, [this, run = request.run]() -> ReplyBody {
    if (const Status marked = store.mark_fetched(run); !marked) return marked.error();
    return schema::DoneReply{run, config.node, 0};
  });
}

void ControlServer::State::handle(const Client& client, schema::VersionRequest) {
  answer(client, schema::VersionReply{config.node, build});
}

void ControlServer::State::handle(const Client& client, const schema::Heartbeat& beat) {
  (void)client;  // a heartbeat has no answer
  const std::optional<Seat> found = names.listed(beat.node);
  if (!found) return log_bad(beat.node, "a heartbeat of a node that no peer line names");
  const Seat peer = *found;
  if (peer == self) return log_bad(beat.node, "a heartbeat under our own name; do two nodes have this name?");
  const std::string before = std::exchange(runs_of_peers[peer], beat.run_id);
  liveness.on_heartbeat(peer, beat, steady_ms());
  if (hooks.on_stale_view && !before.empty() && beat.run_id.empty())
    hooks.on_stale_view(peer, {.node = beat.node, .run_id = before});
  const bool as_here = beat.run_id == watching.run_id && beat.view == progress.view && beat.key == watching.lineage.key;
  if ((beat.view == 0 && beat.ended_run.empty()) || as_here) return;
  if (!hooks.on_stale_view || steady_ms() < view_reported_ms[peer] + kReportViewMs) return;
  view_reported_ms[peer] = steady_ms();
  hooks.on_stale_view(peer, beat);
}

// The message about a node that is still in a run that the others have ended, after a suspend for example; nothing can
// be started until it has ended the run too. "" for all other nodes.
std::string ControlServer::State::unfinished_run(Seat seat, const std::vector<schema::RunStatus>& runs) const {
  const std::string& ours = watching.run_id;
  if (seat != self) {
    const std::string& its = runs_of_peers[seat];
    const bool over =
        its != ours && std::any_of(runs.begin(), runs.end(), [&](const schema::RunStatus& run) {
          return run.id == its && schema::is_final(run.state);  // INTERRUPTED may mean that a node has left the run
        });
    return over ? "it is still in run " + its + ", which is over" : "";
  }
  const auto run = std::ranges::find(runs, ours, &schema::RunStatus::id);
  if (run != runs.end() && run->state == schema::RunState::kPaused) return "";  // and says itself what it lacks
  for (const Seat peer : names.places())
    if (peer != self && watching.has(peer) && runs_of_peers[peer] != ours && liveness.phase_time(peer, steady_ms()))
      return "it is still in run " + ours + ", which " + names[peer] + " has left";
  return "";
}

void ControlServer::State::forward_to_node(const Client& client, schema::RequestBody body) {
  const auto token = requests.call(client, steady_ms());
  if (!token) return refuse(client);
  hooks.on_call({*token, std::move(body)});
}

template <class SliceRequest>
void ControlServer::State::slice(const Client& client, SliceRequest request, const std::string& file,
                                 std::size_t most_bytes) {
  if (relayed(client, request)) return;
  on_disk(client, [this, run = request.run, offset = request.offset, file, most_bytes]() -> ReplyBody {
    Result<schema::SliceReply> found = store.read_slice(run, file, offset, most_bytes);
    if (!found) return found.error();
    return *std::move(found);
  });
}

void ControlServer::State::relay(const Client& client, const std::string& node, schema::RequestBody body) {
  const std::optional<Seat> seat = names.listed(node);
  if (!seat) {
    return answer(client,
                  Error{ErrorKind::kNotFound, "no node '" + node + "'; the nodes are " + schema::joined(names)});
  }
  const auto token = requests.relay(client, *seat, std::move(body), steady_ms());
  if (!token) refuse(client);
}

void ControlServer::State::send_relays() {
  for (const PeerRequest& request : requests.unsent_relays()) {
    if (sockets->send_peer(request.peer, schema::encode_request(request.request)))
      requests.mark_sent(request.request.id);
  }
}

void ControlServer::State::send_heartbeats(std::uint64_t now_ms) {
  schema::Heartbeat beat;
  beat.node = config.node;
  beat.incarnation = incarnation;
  beat.run_id = watching.run_id;
  beat.phase = progress.phase;
  beat.step = progress.step;
  beat.progress = progress.count;
  beat.view = watching.lineage.key == 0 || beat.run_id.empty() ? 0 : progress.view.load();
  beat.ended_run = watching.ended_run;
  beat.lineage = watching.lineage.number;
  beat.key = watching.lineage.key;
  beat.line = watching.lineage.line;
  beat.by_order = watching.lineage.by_order;
  const std::string bytes = schema::encode_request({0, beat});
  for (const Seat peer : names.places()) {
    // A heartbeat that cannot be sent now is useless later.
    if (peer != self) (void)sockets->send_peer(peer, bytes);
  }
  liveness.on_heartbeat(self, beat, now_ms);
}

// All nodes have the key of all control ports, so a node whose name differs from its peer line answers here.
void ControlServer::State::probe_names(std::uint64_t now_ms) {
  if (!hooks.link || now_ms < names_probed_ms + kProbeNamesMs) return;
  names_probed_ms = now_ms;
  const std::string request = schema::encode_request({0, schema::VersionRequest{}});
  for (const Seat peer : names.places())
    if (peer != self && !hooks.link(peer).up) (void)sockets->send_peer(peer, request);
}

void ControlServer::State::tick(std::uint64_t now_ms) {
  probe_names(now_ms);
  for (const Seat peer : names.places()) {
    if (mesh_traffic[peer].exchange(false, std::memory_order_relaxed)) liveness.on_data(peer, now_ms);
  }
  for (Suspicion& verdict : liveness.tick(now_ms)) hooks.on_suspicion(std::move(verdict));
  for (const Seat seat : liveness.take_prepare_progress())
    if (hooks.on_prepare_progress) hooks.on_prepare_progress(seat, watching.run_id);
  for (const Seat peer : names.places())
    reached[peer] = peer == self || (liveness.is_alive(peer, now_ms) && sockets->problem(peer).empty());
  for (Answer& late : requests.take_expired(now_ms)) answer(std::move(late));
}

MeshStatus ControlServer::State::own_status() {
  MeshStatus status;
  status.node = config.node;
  status.build = build;
  status.insecure = config.insecure;
  status.runs = store.statuses();
  const std::uint64_t now_ms = steady_ms();
  for (const Seat peer : names.places()) {
    const schema::PeerAddress address = names.line(peer);
    schema::NodeStatus node{address.name, host_and_port(address.host, static_cast<std::uint16_t>(address.port + 1)),
                            schema::NodeState::kUp, ""};
    if (peer == self) {
      node.problem = progress.orphaned_threads.what();
      if (node.problem.empty()) node.problem = own_problem();
      if (node.problem.empty() && hooks.own_problem) node.problem = hooks.own_problem();
      if (node.problem.empty() && watching.run_id.empty()) node.problem = read_progress();
      if (hooks.compute) node.compute = hooks.compute();
    } else {
      const LinkView link = hooks.link ? hooks.link(peer) : LinkView{};
      const std::string problem = sockets->problem(peer);
      node.problem = link.problem.empty() || (link.silent && !problem.empty()) ? problem : link.problem;
      if (!link.up || !problem.empty()) node.state = schema::NodeState::kNoLink;
      if (!liveness.is_alive(peer, now_ms)) node.state = schema::NodeState::kUnreachable;
    }
    if (const std::string past = unfinished_run(peer, status.runs);
        !past.empty() && node.state == schema::NodeState::kUp) {
      node.state = schema::NodeState::kNoLink;
      node.problem = past;
    }
    status.nodes.push_back(std::move(node));
  }
  std::ranges::sort(status.nodes, {}, &schema::NodeStatus::name);
  for (schema::RunStatus& run : status.runs) {
    if (schema::has_ended(run.state)) continue;
    if (run.state == schema::RunState::kStarting && run.id == watching.run_id)
      if (std::string reads = read_progress(); !reads.empty()) run.reason = std::move(reads);
    for (schema::MemberStatus& member : run.members) {
      if (member.node == config.node) member.phase = progress.phase;
      const std::optional<Seat> seat = names.place_of(member.node);
      if (!seat || run.id != watching.run_id) continue;
      const auto time = liveness.phase_time(*seat, now_ms);
      if (!time) continue;
      member.phase = time->phase;
      member.phase_ms = time->ms;
      member.phase_limit_ms = time->limit_ms;
    }
  }
  return status;
}

// The message about images being read for a start or a dry run. The counters may change between the two loads.
std::string ControlServer::State::read_progress() const {
  const std::uint64_t images = progress.images, done = progress.images_done;
  return images == 0 ? "" : config.node + " reads " + images_text(std::min(done, images), images);
}

// A problem of our own peer line; reported while no peer has reached this node.
std::string ControlServer::State::own_problem() const {
  if (!hooks.link || names.size() == 1) return "";
  for (const Seat peer : names.places())
    if (peer != self && hooks.link(peer).up) return "";
  return own_address_problem(config.self().host);
}

void ControlServer::State::answer(const Client& client, ReplyBody body) {
  const std::string bytes = schema::encode_reply({client.request_id, std::move(body)});
  if (!sockets->send_client(client.identity, bytes))
    log.debug("reply-dropped", {{"reason", "the client has disconnected"}});
}

void ControlServer::State::answer(std::optional<Answer> ready) {
  if (ready) answer(ready->client, std::move(ready->body));
}

void ControlServer::State::log_bad(const std::string& from, const std::string& what) {
  if (const std::optional<std::uint64_t> times = throttle.happened())
    log.warning("bad-control-message", {{"from", from}, {"problem", what}, {"times", *times}});
}

}  // namespace tg::daemon
