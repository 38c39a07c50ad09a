// A node of the simulation: Membership and Liveness as the daemon wires them, with a clockwork in the place of the
// engine. What a run does between its begin and its end is left to a subclass; here it only counts time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/disconnect_grace.h"
#include "daemon/membership/liveness.h"
#include "daemon/membership/membership.h"
#include "daemon/membership/view_links.h"
#include "tests/simulation/simulator/network.h"

namespace tg::simulation {

// What a node has written; survives its death.
struct VirtualDisk {
  struct Record {
    std::string id;
    bool ended = false;
    daemon::RunOutcome end;
    std::uint32_t lineage = 1;
    std::vector<Seat> known = {};      // the members of all its views
    std::vector<schema::Origin> line;  // what it descends from
  };
  std::uint64_t directory = 0;
  std::map<std::uint64_t, daemon::VoterState> votes;           // by key
  std::map<std::uint64_t, Record> runs;                        // by key
  std::map<std::string, std::vector<schema::StateId>> states;  // by id of the run, newest first
  std::uint32_t lineage_of(const std::string& id) const {      // 0 = no record of it
    for (const auto& [key, record] : runs)
      if (record.id == id) return record.lineage;
    return 0;
  }
  bool full = false;  // no state can be saved; records can
};

// Moments at which a member may die.
enum class Moment : std::uint8_t {
  kPromise,  // before its promise is on the disk
  kPromised,
  kAccept,  // the same of what it accepts
  kAccepted,
  kDecide,  // and of what it learns to be decided
  kDecided,
  kInstall,
  kQuiesce,       // all members are held
  kSnapshotDone,  // the joiner has the state
  kJoin,
  kScalerWait,
  kReduce,
  kGather,
  kCommit,
  kEvaluate,
  kCheckpoint,
  kEnd,
};
inline constexpr std::size_t kMoments = 17;

struct NodeOptions {
  Per<Seat, std::string> names;
  Seat self;
  std::uint64_t peer_timeout_ms = 10'000;
  std::uint64_t step_timeout_ms = 60'000;
  std::uint64_t claim_timeout_ms = 5'000;
  std::uint64_t prepare_timeout_ms = 300'000;
  std::uint64_t least_prepare_ms = 1, most_prepare_ms = 200;
  std::uint64_t least_save_ms = 1, most_save_ms = 20;
  std::shared_ptr<VirtualDisk> disk = std::make_shared<VirtualDisk>();
  bool links_rekey = false;  // every connection that breaks does so for one of both gets another key
  std::uint64_t run_ms = 0;  // then COMPLETED; 0 = until something ends it
  std::function<void(Seat, std::uint64_t key, bool begin)> on_begin_or_end;
  std::function<void(Seat, Moment)> on_moment;  // may kill it
  bool hears_lies = false;                      // from another node: what is sent to it may not be of the run
  schema::Vote vote{true, ErrorKind::kFailed, "", 11, 22, 33, 44, 0.01, 16, 0, 1, 0, 0, 1000};
};

// What a node's user and its disk would have seen.
struct Outcome {
  bool began = false;
  bool dropped = false;
  std::optional<schema::RunState> end;
  std::string reason;
  std::optional<daemon::RunOutcome> verdict;
  std::vector<schema::RunState> told;   // every end that status has shown, in order, since it last began
  std::optional<schema::StateId> from;  // where it last began
  std::vector<schema::NextView> views;  // that it installed
  bool joined = false;                  // the first of them is the one that it came in with
  std::uint64_t end_ms = 0;
  schema::ExchangeKind exchange = schema::ExchangeKind::kDirect;
};
struct StartAnswer {
  std::string run_id;
  Status status;
  std::uint64_t time_ms = 0;
};

class VirtualNode : public Machine {
 public:
  VirtualNode(Network& network, NodeOptions options);

  void start(std::uint64_t token, const daemon::RunIdentity& run);
  Status stop(const std::string& run_id);
  Status leave();
  void come_back() { left_by_order_.clear(); }
  void shut_down();
  void lose(Seat peer, const std::string& message);
  // The engine hangs from now on: heartbeats continue, progress does not.
  void hang(schema::Phase phase) { hung_ = phase; }
  // Its node's thread is stuck from now on: membership takes no event; its heartbeats continue, its connections stay.
  void stick() { stuck_ = true; }

  daemon::Membership& membership() { return membership_; }
  Seat seat() const { return options_.self; }
  bool running() const { return running_.has_value(); }
  const VirtualDisk& disk() const { return *options_.disk; }
  std::optional<std::uint64_t> running_key() const;
  Outcome& outcome(const std::string& run_id) { return outcomes_[run_id]; }
  const std::map<std::string, Outcome>& outcomes() const { return outcomes_; }
  const std::map<std::uint64_t, StartAnswer>& answers() const { return answers_; }  // by token

  void on_frame(Seat from, const SharedMessage& message) override;
  void on_connection(Seat peer, bool up) override;
  void on_beat(Seat from, const schema::Heartbeat& beat) override;
  void on_tick() override;

 protected:
  // What the run's own code does; the default is a clockwork that stops when any member was asked to.
  virtual void run_begins(const schema::Commit& choice);
  virtual void run_frame(Seat from, const SharedMessage& message);
  virtual void run_asked_to_stop();
  virtual void run_ends() {}
  struct State {
    std::uint64_t step = 0, digest = 0;
  };
  virtual State held() const { return {1, 0xd1}; }
  virtual std::uint64_t confirmed_step() const { return 0; }
  // It commits nothing more in its view; returns what it has committed, and why it could not continue.
  struct Sealed {
    std::uint64_t step = 0;
    std::string unfit;
    bool can_undo = true;
  };
  virtual Sealed seal_run() { return {step_, ""}; }
  virtual void run_changes(const schema::NextView&) {}
  virtual void run_is_left(std::uint64_t /*start*/) {}
  // A joiner receives a snapshot: this node as its donor, and as the joiner. The clockwork has no state to send.
  virtual void run_quiesces() {}
  virtual schema::SnapshotOffer run_offers_snapshot() { return {}; }
  virtual void run_sends_snapshot(Seat, const schema::SnapshotRequest&) {}
  virtual void run_is_released() {}
  virtual void run_receives_snapshot(const daemon::ReceiveSnapshot&) {}
  virtual void run_is_joined(const schema::NextView&, const schema::Commit&) {}
  virtual void run_tick() { ++progress_; }
  virtual bool run_is_prepared() const { return false; }  // it takes frames before its begin
  virtual schema::Vote prepare_run(const daemon::RunIdentity&, const daemon::View&) { return options_.vote; }

  void apply_actions();
  void send(const std::vector<Seat>& to, const SharedMessage& message);
  void reaches(Moment moment) const {
    if (options_.on_moment) options_.on_moment(options_.self, moment);
  }
  bool dead() const { return network_.machine(options_.self) != this || network_.dead(options_.self); }
  void finish(schema::RunState state, const std::string& reason);
  std::vector<Seat> others() const;

  Network& network_;
  const NodeOptions options_;
  daemon::Membership membership_;
  daemon::Liveness liveness_;
  daemon::ViewLinks view_links_;
  std::optional<daemon::RunIdentity> running_;
  daemon::Lineage lineage_;  // the newest run's
  schema::Phase phase_ = schema::Phase::kIdle;
  std::uint64_t step_ = 0;
  std::uint64_t progress_ = 0;

 private:
  void apply(const daemon::SendFrame& action);
  void apply(const daemon::ListSavedStates& action);
  void apply(const daemon::PrepareRun& action);
  void apply(const daemon::BeginRun& action);
  void apply(const daemon::DropRun& action);
  void apply(const daemon::SaveRun& action);
  void apply(const daemon::EndRun& action);
  void apply(const daemon::RecordEnd& action);
  void apply(const daemon::AnswerStart& action);
  void apply(const daemon::RestartProposal& action);
  void apply(const daemon::RequestStop& action);
  void apply(const daemon::Seal& action);
  void apply(const daemon::WriteVote& action);
  void apply(const daemon::InstallView& action);
  void apply(const daemon::LeaveView& action);
  void apply(const daemon::QuiesceRun& action);
  void apply(const daemon::ReadHistory& action);
  void apply(const daemon::SendSnapshotChunks& action);
  void apply(const daemon::NoteJoin&) {}
  void apply(const daemon::ReleaseRun& action);
  void apply(const daemon::ReceiveSnapshot& action);
  void apply(const daemon::JoinRun& action);
  Outcome& begin(const daemon::RunIdentity& run);
  void watch();

  struct BeforeRun {
    Seat from;
    SharedMessage message;
  };
  daemon::DisconnectGrace disconnect_grace_;
  bool leaving_ = false;
  std::vector<BeforeRun> before_run_;  // frames of a run that has not begun here yet
  bool saving_ = false;
  std::optional<schema::Phase> hung_;
  std::string left_by_order_;  // a run that it has left on request: it does not rejoin that one
  bool stuck_ = false;
  std::uint64_t ticks_ = 0;
  std::map<std::string, Outcome> outcomes_;
  std::map<std::uint64_t, StartAnswer> answers_;
  std::map<std::uint64_t, std::string> ids_;  // by key
};

}  // namespace tg::simulation
