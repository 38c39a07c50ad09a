#include "tests/simulation/simulator/machine.h"

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

Per<Seat, std::string> first_names(std::size_t count) {
  Per<Seat, std::string> names;
  for (const char* name : {"node-a", "node-b", "node-c", "node-d"})
    if (names.size() < count) names.emplace_back(name);
  TG_CHECK(names.size() == count, count);
  return names;
}

std::string kind_name(ErrorKind kind) {
  constexpr const char* kNames[] = {"failed",     "usage",   "invalid job", "unreachable", "not found",
                                    "run failed", "refused", "corrupt",     "io",          "timeout"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string letter(std::size_t seat) { return {static_cast<char>('a' + seat)}; }
std::string letter(const std::string& node) { return node.substr(node.size() - 1); }
std::string letter(Seat seat) { return {static_cast<char>('a' + seat.index())}; }

std::string key_of(std::uint64_t key) { return key == kKey ? "" : " (key " + std::to_string(key) + ")"; }

// Where it names none, the run's seats are those of the machine's nodes.
void name_seats(schema::FrameBody& body, const std::vector<std::string>& names) {
  const auto name = [&](std::vector<std::string>& seats) {
    if (seats.empty()) seats = names;
  };
  if (auto* const propose = std::get_if<schema::Propose>(&body)) name(propose->names);
  if (auto* const commit = std::get_if<schema::Commit>(&body)) name(commit->names);
  if (auto* const offer = std::get_if<schema::Offer>(&body)) name(offer->names);
  if (auto* const promise = std::get_if<schema::Promise>(&body)) name(promise->accepted.names);
  if (auto* const accept = std::get_if<schema::Accept>(&body)) name(accept->view.names);
  if (auto* const decide = std::get_if<schema::Decide>(&body)) name(decide->view.names);
  if (auto* const invite = std::get_if<schema::Invite>(&body)) name(invite->view.names);
}

// What is done, and what is said with it.
struct Said {
  std::string verb, text;
};
Said words(const schema::Claim& claim) { return {"claim " + claim.run_id, ""}; }
Said words(const schema::Grant& grant) { return {grant.granted ? "grant" : "refuse", grant.message}; }
thread_local std::size_t named = 0;  // how many nodes the machine knows that speaks
// The weights are said where they are not all one.
std::string weights_of(const Per<Seat, std::uint16_t>& weights) {
  std::string text;
  bool equal = true;
  for (const std::uint16_t weight : std::span(weights).first(std::min(named, weights.size()))) {
    text += (text.empty() ? " split " : ":") + std::to_string(weight);
    equal = equal && weight == 1;
  }
  return equal ? "" : text;
}
// What is known of a beginning that is not the first one.
std::string resume_of(const std::optional<schema::Resume>& resume) {
  if (!resume) return "";
  const std::string which = resume->from_step ? " from " + std::to_string(*resume->from_step) : "";
  return " again" + which + (resume->start ? " at " + std::to_string(resume->start->step) : "");
}
Said words(const schema::Propose& proposal) {
  std::string members;
  for (const std::uint32_t seat : proposal.members) members += (members.empty() ? " with " : " ") + letter(seat);
  return {"propose " + proposal.run_id + weights_of(proposal.weights) + resume_of(proposal.resume) + members, ""};
}
Said words(const schema::Offer& offer) {
  std::string steps;
  for (const schema::StateId& state : offer.states) steps += (steps.empty() ? "" : " ") + std::to_string(state.step);
  return {"offer", (steps.empty() ? "nothing" : steps) + (offer.problem.empty() ? "" : ", " + offer.problem)};
}
Said words(const schema::Vote& vote) {
  return vote.accepted ? Said{"vote yes", ""} : Said{"vote no", kind_name(vote.kind) + ": " + vote.message};
}
std::string exchange_name(const schema::Commit& commit) {
  const Per<Rank, std::uint16_t> weights = View(daemon::first_view(commit)).weights();
  return to_word(commit.exchange) + weights_of({weights.begin(), weights.end()});
}
Said words(const schema::Commit& commit) { return {"commit " + exchange_name(commit), ""}; }
Said words(const schema::Fail& fail) { return {"fail", fail.node + ", " + kind_name(fail.kind) + ": " + fail.message}; }
Said words(const schema::Ended& ended) {
  return {ended.asks ? "ended?" : "ended", std::string(to_word(ended.state)) +
                                               (ended.reason.empty() ? "" : ", " + ended.reason) + ", " +
                                               std::string(to_word(ended.save))};
}
Said words(const schema::Goodbye& goodbye) { return {"goodbye", goodbye.reason}; }
// "1a"
std::string word_of(const schema::Ballot& ballot) { return std::to_string(ballot.count) + letter(ballot.seat); }
// "view 2 of a c from 12"
std::string words_of(const schema::NextView& view) {
  std::string text = "view " + std::to_string(view.number) + " of";
  for (const schema::ViewMember& member : view.members) {
    text += " " + letter(member.seat);
    EXPECT_EQ(member.directory, directory_of(Seat(member.seat)));
    EXPECT_EQ(member.incarnation, incarnation_of(Seat(member.seat)));
  }
  return text + " from " + std::to_string(view.start) + (view.waits ? ", waiting" : "");
}
Said words(const schema::Suspect& suspect) { return {"suspect " + letter(suspect.seat), suspect.why}; }
Said words(const schema::Prepare& prepare) { return {"prepare " + word_of(prepare.ballot), ""}; }
Said words(const schema::Promise& promise) {
  std::string text = promise.has_state ? "step " + std::to_string(promise.step) + ", reaches" : "no state";
  if (promise.has_state)
    for (const std::string& node : promise.reachable) text += " " + letter(node);
  if (!promise.unfit.empty()) text += ", unfit: " + promise.unfit;
  if (promise.leaving) text += ", leaving";
  if (promise.accepted_in.count > 0)
    text += ", accepted " + word_of(promise.accepted_in) + ": " + words_of(promise.accepted);
  return {"promise " + word_of(promise.ballot), text};
}
Said words(const schema::Nack& nack) { return {"nack " + word_of(nack.ballot), ""}; }
Said words(const schema::Accept& accept) { return {"accept " + word_of(accept.ballot), words_of(accept.view)}; }
Said words(const schema::Accepted& accepted) { return {"accepted " + word_of(accepted.ballot), ""}; }
Said words(const schema::Decide& decide) { return {"decide", words_of(decide.view)}; }
Said words(const schema::Join& join) {
  std::string hears;
  for (const std::string& node : join.reachable) hears += " " + letter(node);
  return {"join " + join.run_id, std::string(join.prepared ? "prepared" : "not prepared") + ", reaches" + hears};
}
Said words(const schema::Invite& invite) { return {"invite", invite.run_id + ", " + words_of(invite.view)}; }
Said words(const schema::Quiesce& hold) {
  return {std::string(hold.over ? "released for " : "quiesced for ") + letter(hold.node), hold.why};
}
Said words(const schema::SnapshotOffer& offer) {
  return {"snapshot offer", "step " + std::to_string(offer.state.step)};
}
Said words(const schema::SnapshotDone& done) { return {"snapshot done", "step " + std::to_string(done.state.step)}; }
Said words(const schema::Leave&) { return {"leave", ""}; }
template <class Body>
Said words(const Body&) {
  return {"a frame that is not membership's", ""};
}

std::string words(const SendFrame& action) {
  const std::uint32_t view = action.header.view;
  const Said said = std::visit([](const auto& body) { return words(body); }, action.body);
  std::string text = said.verb + " to";
  for (const Seat seat : action.to) text += " " + letter(seat);
  return text + key_of(action.header.run) + (view == View::kFirst ? "" : " (view " + std::to_string(view) + ")") +
         (said.text.empty() ? "" : ": " + said.text);
}
std::string words(const ListSavedStates& action) {
  EXPECT_TRUE(action.run.resume && !action.run.resume->start);
  return "find states of " + action.run.id + key_of(action.run.run_key);
}
std::string words(const PrepareRun& action) {
  std::string text = "prepare " + action.run.id + " with";
  for (const Rank rank : places<Rank>(action.view.size())) text += " " + letter(action.view.seat(rank));
  return text + weights_of(action.run.weights) + resume_of(action.run.resume) + key_of(action.run.run_key);
}
std::string words(const BeginRun& action) {
  return "begin " + action.run.id + resume_of(action.run.resume) + ", " + exchange_name(action.choice.commit) +
         key_of(action.run.run_key);
}
std::string words(const DropRun& action) { return "drop" + key_of(action.run_key); }
std::string words(const SaveRun& action) {
  return "save " + action.id + key_of(action.run_key) + ": " + std::string(to_word(action.state)) +
         (action.reason.empty() ? "" : ": " + action.reason);
}
// "a saved, b ?, c nothing saved"
std::string members_of(const RunOutcome& end) {
  std::string text;
  for (const Seat seat : places<Seat>(std::min(named, end.members.size())))
    text += (text.empty() ? "" : ", ") + letter(seat) + " " +
            (end.members[seat] ? std::string(to_word(end.members[seat]->save)) : "?");
  return text;
}
std::string words(const RecordEnd& action) {
  return "record" + key_of(action.run_key) + ": " + std::string(to_word(action.end.truth.state)) +
         (action.end.truth.reason.empty() ? "" : ": " + action.end.truth.reason) + " (" + members_of(action.end) + ")";
}
std::string words(const EndRun& action) {
  return "end " + action.id + key_of(action.run_key) + ": " + std::string(to_word(action.state)) +
         (action.reason.empty() ? "" : ": " + action.reason) +
         (action.end.members.empty() ? "" : " (" + members_of(action.end) + ")");
}
std::string words(const AnswerStart& action) {
  EXPECT_EQ(action.token, kToken);
  const std::string answer =
      action.status.ok() ? "RUNNING" : kind_name(action.status.error().kind) + ": " + action.status.error().message;
  return "answer " + action.run_id + ": " + answer;
}
std::string words(const RestartProposal& action) {
  EXPECT_EQ(action.token, kToken);
  return "start " + action.run.id + resume_of(action.run.resume) + " anew within " +
         std::to_string(action.run.start_timeout_ms) + " ms";
}
std::string words(const RequestStop& action) { return "ask to stop" + key_of(action.run_key); }
std::string words(const Seal& action) { return "seal" + key_of(action.run_key); }
// "write view 1, promised 2b, accepted 1a"
std::string words(const WriteVote& action) {
  EXPECT_EQ(action.run_key, action.vote.run_key);
  return "write view " + std::to_string(action.vote.view.number) + key_of(action.run_key) +
         (action.vote.promised.count == 0 ? "" : ", promised " + word_of(action.vote.promised)) +
         (action.vote.accepted_in.count == 0 ? "" : ", accepted " + word_of(action.vote.accepted_in));
}
std::string words(const InstallView& action) { return "install " + words_of(action.next) + key_of(action.run_key); }
std::string words(const LeaveView& action) { return "leave for " + words_of(action.next) + key_of(action.run_key); }
std::string words(const QuiesceRun& action) { return "quiesce" + key_of(action.run_key); }
std::string words(const ReadHistory& action) { return "read the history" + key_of(action.run_key); }
std::string words(const SendSnapshotChunks& action) {
  return "send chunks to " + letter(action.to) + " from " + std::to_string(action.want.from) +
         (action.want.again ? " again" : "") + key_of(action.run_key);
}
std::string words(const NoteJoin& action) {
  return (action.is_hint ? "hint" : "note") + key_of(action.run_key) + ": " + action.what;
}
std::string words(const ReleaseRun& action) {
  return "release" + key_of(action.run_key) + (action.why.empty() ? "" : ": " + action.why);
}
std::string words(const ReceiveSnapshot& action) {
  return "receive the snapshot of step " + std::to_string(action.feed.state.step) + " from " + letter(action.from) +
         key_of(action.run_key);
}
std::string words(const JoinRun& action) {
  return "join " + action.run.id + " in " + words_of(action.next) + key_of(action.run.run_key);
}

}  // namespace

Machine::Machine(Seat self, std::size_t members, bool connected, std::uint16_t weight)
    : options_{first_names(members), self, weight, directory_of(self), incarnation_of(self)},
      machine_(std::make_unique<Membership>(options_)) {
  for (const Seat seat : places<Seat>(members)) {
    if (!connected) circumstances_.deaf_to.insert(seat);
    if (connected && seat != self)
      after([seat](Membership& machine, std::uint64_t now_ms) { machine.on_connection_changed(seat, true, now_ms); });
  }
}

Machine::Machine(const Machine& other) : options_(other.options_), machine_(std::make_unique<Membership>(options_)) {
  for (const Happened& one : other.past_) {
    now_ms_ = one.now_ms;
    circumstances_ = one.circumstances;
    after(one.event);
  }
  now_ms_ = other.now_ms_;
  circumstances_ = other.circumstances_;
}

Machine& Machine::has_committed(std::uint64_t step) {
  circumstances_.report.step = step;
  return *this;
}
Machine& Machine::does_not_reach(Seat peer) {
  circumstances_.deaf_to.insert(peer);
  return *this;
}
Machine& Machine::disk_is_full(bool full) {
  circumstances_.full = full;
  return *this;
}

Machine& Machine::disk_stands_still() {
  circumstances_.stands = true;
  return *this;
}

void Machine::answer(const MembershipAction& action, std::uint64_t now_ms) {
  if (const auto* seal = std::get_if<Seal>(&action)) {
    SealReport report = circumstances_.report;
    for (const Seat seat : options_.names.places())
      if (seat != options_.self && !circumstances_.deaf_to.contains(seat)) report.reachable.push_back(seat);
    machine_->on_sealed(seal->run_key, report, now_ms);
  }
  if (const auto* write = std::get_if<WriteVote>(&action); write && !circumstances_.stands) {
    if (!circumstances_.full) vote_ = write->vote;
    machine_->on_vote_written(write->run_key, circumstances_.full ? "its disk is full" : "", now_ms);
  }
}

ChangeTimes Machine::installed() const {
  for (const MembershipAction& action : actions_)
    if (const auto* install = std::get_if<InstallView>(&action)) return install->times;
  ADD_FAILURE() << "it has installed nothing";
  return {};
}

std::string Machine::after(Happens event) {
  named = options_.names.known();
  event(*machine_, now_ms_);
  past_.push_back({std::move(event), now_ms_, circumstances_});
  actions_.clear();
  std::string lines;
  for (auto actions = machine_->take_actions(); !actions.empty(); actions = machine_->take_actions()) {
    for (const MembershipAction& action : actions) {
      lines += (lines.empty() ? "" : "\n") + std::visit([](const auto& one) { return words(one); }, action);
      answer(action, now_ms_);
      actions_.push_back(action);
    }
  }
  return lines;
}

std::string Machine::disk_goes_on() {
  circumstances_.stands = false;
  return after([](Membership& machine, std::uint64_t now_ms) { machine.on_vote_written(kKey, "", now_ms); });
}

std::string Machine::disk_is_late(const std::string& why) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_disk_problem(why, now_ms); });
}

std::string Machine::start(const std::string& id, std::uint64_t key, const std::string& spec) {
  return after([=](Membership& machine, std::uint64_t now_ms) {
    machine.start(kToken, {key, id, spec, 30'000}, now_ms);
  });
}
std::string Machine::starts_with(const std::vector<Seat>& asked) {
  RunIdentity run{kKey, "run-1", schema::canonical_job({}), 30'000};
  run.members = asked;
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.start(kToken, run, now_ms); });
}
std::string Machine::resumes(const schema::Resume& resume, const std::string& id, std::uint64_t key,
                             std::optional<schema::StateId> not_from, const std::string& spec) {
  RunIdentity run{key, id, spec, 30'000};
  run.weights.assign(options_.names.size(), 1);
  run.resume = resume;
  run.not_from = not_from;
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.start(kToken, run, now_ms); });
}
std::string Machine::connects(Seat peer, std::uint16_t weight) {
  circumstances_.deaf_to.erase(peer);
  return after([=](Membership& machine, std::uint64_t now_ms) {
    machine.set_weight(peer, weight);
    machine.on_connection_changed(peer, true, now_ms);
  });
}
std::string Machine::cannot_join(Seat peer, const std::string& why) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_incompatible_peer(peer, why, now_ms); });
}
std::string Machine::disconnects(Seat peer) {
  circumstances_.deaf_to.insert(peer);
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_connection_changed(peer, false, now_ms); });
}
std::string Machine::is_back(Seat peer) {
  const std::string message = options_.names[options_.self] + " lost the connection to " + options_.names[peer];
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_link_lost(peer, message, true, now_ms); });
}
std::string Machine::rekeys(Seat peer) {
  return after(
      [=](Membership& machine, std::uint64_t now_ms) { machine.on_connection_changed(peer, false, now_ms, true); });
}
// Votes and commits name their sender, as all nodes' do.
std::string Machine::receives(Seat from, const schema::FrameBody& said, std::uint64_t key, std::uint32_t view) {
  schema::FrameBody body = said;
  if (auto* const vote = std::get_if<schema::Vote>(&body)) {
    vote->directory = directory_of(from);
    vote->incarnation = incarnation_of(from);
  }
  if (auto* const commit = std::get_if<schema::Commit>(&body); commit != nullptr && commit->members.empty())
    commit->members = first_view(options_.names.size()).members;
  name_seats(body, first_names(options_.names.size()));
  return after([=](Membership& machine, std::uint64_t now_ms) {
    machine.on_frame(from, {key, view, 0}, body, now_ms);
  });
}
std::string Machine::offers(const schema::Offer& offer, std::uint32_t known_lineage) {
  return after(
      [=](Membership& machine, std::uint64_t now_ms) { machine.on_offer(kKey, offer, known_lineage, now_ms); });
}
std::string Machine::prepares(const schema::Vote& vote, const engine::EachName& names) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_prepared(kKey, vote, now_ms, names); });
}
std::string Machine::makes_progress(Seat seat) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_prepare_progress(seat, now_ms); });
}
std::string Machine::loses(Seat peer, const std::string& message) {
  circumstances_.deaf_to.insert(peer);
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_peer_lost(peer, message, now_ms); });
}
std::string Machine::fails(const schema::Fail& cause) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_failed(cause, now_ms); });
}
std::string Machine::finishes(schema::RunState state, const std::string& reason) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_finished(state, reason, now_ms); });
}
std::string Machine::stopping() {
  return after([](Membership& machine, std::uint64_t) { machine.on_stopping(); });
}
std::string Machine::finished(Seat peer) {
  return after([=](Membership& machine, std::uint64_t) { machine.on_peer_finished(peer); });
}
std::string Machine::remembers(PastRun run, std::uint64_t key) {
  run.known = run.members.places_where([&](Seat seat) { return run.members[seat]; });
  return after([=](Membership& machine, std::uint64_t) { machine.add_past_run(key, run); });
}
std::string Machine::remembers_voter(VoterState vote) {
  vote.view.names = vote.accepted.names = first_names(options_.names.size());
  return after([=](Membership& machine, std::uint64_t) { machine.add_past_voter(vote, "run-1"); });
}
std::string Machine::receives_heartbeat(Seat from, std::uint32_t view, const daemon::Lineage& lineage,
                                        const daemon::Held& own) {
  schema::Heartbeat beat{.node = options_.names[from], .run_id = "run-1", .view = view};
  beat.lineage = lineage.number;
  beat.key = lineage.key;
  beat.line = lineage.line;
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_heartbeat(from, beat, own, now_ms); });
}
std::string Machine::discovers_run() {
  return after([](Membership& machine, std::uint64_t now_ms) { machine.on_run_discovered("run-1", now_ms); });
}
std::string Machine::is_quiesced() {
  return after([](Membership& machine, std::uint64_t now_ms) { machine.on_quiesced(kKey, now_ms); });
}
std::string Machine::offers_snapshot(const schema::SnapshotOffer& offer) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_snapshot_offer(kKey, offer, now_ms); });
}
std::string Machine::has_snapshot(const std::string& why_not) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_snapshot_done(kKey, why_not, now_ms); });
}
std::string Machine::saves(const schema::Ended& own) {
  return after([=](Membership& machine, std::uint64_t now_ms) { machine.on_saved(kKey, own, now_ms); });
}
std::string Machine::stops(const std::string& id) {
  const auto no = std::make_shared<std::string>();
  const std::string done = after([=](Membership& machine, std::uint64_t now_ms) {
    if (const Status status = machine.stop(id, now_ms); !status.ok()) *no = "no: " + status.error().message;
  });
  return *no + done;
}
std::string Machine::leaves() {
  const auto no = std::make_shared<std::string>();
  const std::string done = after([=](Membership& machine, std::uint64_t now_ms) {
    if (const Status status = machine.leave(now_ms); !status.ok()) *no = "no: " + status.error().message;
  });
  return *no + done;
}
std::string Machine::stays_out() {
  return after([](Membership& machine, std::uint64_t) { machine.stay_out(); });
}
std::string Machine::shuts_down() {
  return after([](Membership& machine, std::uint64_t now_ms) { machine.shut_down(now_ms); });
}
std::string Machine::waits(std::uint64_t ms) {
  now_ms_ += ms;
  return after([](Membership& machine, std::uint64_t now_ms) { machine.tick(now_ms); });
}

std::string start_ends(const std::string& state, const std::string& kind, const std::string& reason) {
  return "end run-1: " + state + ": " + reason + "\nanswer run-1: " + kind + ": " + reason;
}
std::string proposal_fails(const std::string& node, const std::string& kind, const std::string& message) {
  return "fail to b c: " + node + ", " + kind + ": " + message + "\nanswer run-1: " + kind + ": " + message + "\ndrop";
}
std::string run_fails(const std::string& node, const std::string& kind, const std::string& message) {
  return "fail to a c: " + node + ", " + kind + ": " + message + "\nsave run-1: FAILED: " + message;
}

Machine proposing() {
  Machine a(kA, 3);
  a.start();
  return a;
}
Machine running_proposer() {
  Machine a = proposing();
  a.prepares(yes());
  a.receives(kB, yes());
  a.receives(kC, yes());
  return a;
}
Machine running(Seat self, std::size_t members, const schema::Vote& own) {
  Machine one(self, members);
  if (self == kA) {
    one.start();
    one.prepares(own);
    for (const Seat seat : places<Seat>(members))
      if (seat != kA) one.receives(seat, yes());
    return one;
  }
  schema::Propose proposal{"run-1", "steps = 5\n", {}};
  proposal.weights.assign(members, 1);
  one.receives(kA, proposal);
  one.prepares(yes());
  one.receives(kA, schema::Commit{});
  return one;
}
Machine restarted(Seat self, std::size_t members) {
  Machine one(self, members, false);
  one.remembers_voter({kKey, first_view(members), {}, {}, {}});
  return one;
}

schema::NextView first_view(std::size_t members) {
  std::vector<Seat> seats;
  for (const Seat seat : places<Seat>(members)) seats.push_back(seat);
  return next_view(seats, 0, View::kFirst);
}
schema::NextView next_view(const std::vector<Seat>& members, std::uint64_t start, std::uint32_t number) {
  schema::NextView view{.number = number, .start = start};
  for (const Seat seat : members)
    view.members.push_back({.seat = static_cast<std::uint32_t>(seat.index()),
                            .incarnation = incarnation_of(seat),
                            .directory = directory_of(seat)});
  return view;
}
schema::Promise promise(Seat from, schema::Ballot ballot, std::uint64_t step) {
  schema::Promise promise{ballot, directory_of(from), incarnation_of(from), true, step};
  for (const Seat seat : {kA, kB, kC, kD})
    if (seat != from) promise.reachable.push_back("node-" + letter(seat));
  return promise;
}
schema::Accepted accepted(Seat from, schema::Ballot ballot) {
  return {ballot, directory_of(from), incarnation_of(from)};
}

Machine preparing() {
  Machine b(kB, 3);
  b.receives(kC, proposal("run-1", "steps = 5\n"));
  return b;
}
schema::Ended an_end(schema::RunState state, std::int64_t since_ms, const std::string& reason, schema::SaveState save,
                     std::uint64_t held_step) {
  schema::Ended end;
  end.state = state;
  end.reason = reason;
  end.since_ms = since_ms;
  end.save = save;
  end.held_step = end.held_digest = held_step;
  if (schema::is_authoritative(state)) end.step = end.digest = held_step;
  return end;
}

Machine voted() {
  Machine b = preparing();
  b.prepares(yes());
  return b;
}
Machine running_member() {
  Machine b = voted();
  b.receives(kC, schema::Commit{schema::ExchangeKind::kSharded, schema::Coding::kRaw, schema::kMaxWindowBytes,
                                schema::kLargeChunkParameters});
  return b;
}

schema::Offer states(const std::vector<std::uint64_t>& steps, std::uint64_t odd) {
  schema::Offer offer;
  for (const std::uint64_t step : steps) offer.states.push_back({1, 1, step, step + odd});
  return offer;
}

Machine finding() {
  Machine a(kA, 3);
  a.resumes({});
  return a;
}
Machine looking() {
  Machine b(kB, 3);
  b.receives(kC, to_go_on());
  return b;
}
Machine offering() {
  Machine b = looking();
  b.offers(states({900, 600}));
  return b;
}

}  // namespace tg::daemon
