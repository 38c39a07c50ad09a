#include "daemon/membership/admission.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/membership/duration_text.h"
#include "daemon/membership/votes.h"

namespace tg::daemon {

// --- requests ---

void Admission::on_join(Seat from, const schema::Join& join, const ViewChange& change, bool stops,
                        std::uint64_t now_ms) {
  const View& view = change.view();
  if (!may_admit(change) || stops || view.has(from)) return;
  if (phase_ != Phase::kNone && seat_ == from && incarnation_ == join.vote.incarnation) return;
  if (phase_ != Phase::kNone && seat_ == from) release(view, peers_.name(from) + " was restarted");
  if (const std::string why = refusal_reason(from, join, view, now_ms); !why.empty()) return refuse(from, view, why);
  invite(from, change);
  if (!join.prepared) return;
  Pause& pause = pauses_[from];
  pause.ms =
      pause.ms == 0 || now_ms >= pause.until_ms + pause.ms ? kFirstPauseMs : std::min(2 * pause.ms, kLongestPauseMs);
  pause.until_ms = now_ms + pause.ms;
  directory_ = join.vote.directory;
  incarnation_ = join.vote.incarnation;
  sent_bytes_ = 0;
  offer_ = {};
  quiesce(from, true, now_ms);
}

void Admission::on_leave(Seat from, const schema::Leave&, const ViewChange& change, bool stops, std::uint64_t now_ms) {
  if (may_admit(change) && !stops && change.view().has(from) && phase_ == Phase::kNone) quiesce(from, false, now_ms);
}

bool Admission::may_admit(const ViewChange& change) const {
  return change.view().by_seniority().front() == peers_.self() && change.has_state() && !change.in_progress();
}

void Admission::quiesce(Seat seat, bool is_join, std::uint64_t now_ms) {
  phase_ = Phase::kQuiescing;
  seat_ = seat;
  is_join_ = is_join;
  since_ms_ = heard_ms_ = reported_ms_ = now_ms;
  out_.emit(QuiesceRun{run_.run_key});
}

// "" if its turn has come, or it has to prepare.
std::string Admission::refusal_reason(Seat from, const schema::Join& join, const View& view,
                                      std::uint64_t now_ms) const {
  if (options_.join_limit_ms == 0) return "join-limit is 0: no node can join this run";
  std::vector<Seat> unheard = view.seats();
  std::erase_if(unheard, [&](Seat seat) {
    return std::ranges::find(join.reachable, peers_.name(seat)) != join.reachable.end() && peers_.connected(from);
  });
  if (!unheard.empty()) return peers_.name(from) + " and " + peers_.names_of(unheard) + " do not reach each other";
  if (view.names().size() == schema::kMaxMembers && !std::ranges::count(view.names(), peers_.name(from)))
    return "run " + run_.id + " has given all of its " + std::to_string(schema::kMaxMembers) +
           " seats, and has none for " + peers_.name(from);
  if (options_.own.global_batch <= view.size())
    return "a batch of " + std::to_string(options_.own.global_batch) + " has no share for " +
           std::to_string(view.size() + 1) + " members";
  if (!join.prepared) return "";
  Votes votes(peers_.names());
  if (options_.names) votes.know(options_.names);
  schema::Vote theirs = join.vote;
  theirs.state_hash = options_.own.state_hash;
  votes.take(peers_.self(), options_.own);
  if (const std::optional<schema::Fail> cause = votes.take(from, theirs)) return cause->message;
  if (phase_ != Phase::kNone) return peers_.name(seat_) + " joins first";
  if (const std::uint64_t until = pauses_[from].until_ms; now_ms < until)
    return peers_.name(from) + " joined not long ago; it is admitted again in " + rounded_seconds_text(until - now_ms);
  return "";
}

void Admission::refuse(Seat to, const View& view, const std::string& why) {
  out_.send({to}, run_.run_key, view.number(), schema::Quiesce{.node = peers_.name(to), .over = true, .why = why});
}

void Admission::invite(Seat to, const ViewChange& change) {
  std::vector<std::uint16_t> weights;
  for (const std::string& node : change.view().names()) weights.push_back(weight_of_node(node));
  out_.send({to}, run_.run_key, change.view().number(),
            schema::Invite{run_.id, run_.spec, std::move(weights), options_.own.global_batch, run_.lineage(),
                           change.newest(), choice_});
}

// --- the quiesce ---

void Admission::on_quiesced(const ViewChange& change, std::uint64_t now_ms) {
  if (!may_admit(change) || phase_ > Phase::kQuiescing) return;
  if (phase_ == Phase::kNone) return release(change.view(), "");  // the joiner was lost before
  phase_ = is_join_ ? Phase::kReadingHistory : Phase::kLeaving;
  since_ms_ = heard_ms_ = now_ms;
  if (is_join_) return out_.emit(ReadHistory{run_.run_key});
  if (seat_ == peers_.self()) return;
  const std::string why = peers_.name(seat_) + " leaves";
  out_.send({seat_}, run_.run_key, change.view().number(), schema::Quiesce{.node = peers_.name(seat_), .why = why});
}

void Admission::on_snapshot_offer(schema::SnapshotOffer offer, const ViewChange& change, std::uint64_t now_ms) {
  if (phase_ != Phase::kReadingHistory) return;
  phase_ = Phase::kSending;
  offer_ = std::move(offer);
  heard_ms_ = now_ms;
  out_.send({seat_}, run_.run_key, change.view().number(), offer_);
  report_progress(change.view(), now_ms);
}

// The weight that the run began with; that of a node without a seat is the one in its hello.
std::uint16_t Admission::weight_of_node(const std::string& node) const {
  const std::optional<Seat> seat = peers_.seat_of(node);
  if (!seat) return 1;
  return std::ranges::count(run_.names, node) > 0 ? run_.weights[*seat] : peers_.weights()[*seat];
}

std::uint64_t Admission::snapshot_bytes() const {
  return std::accumulate(offer_.parts.begin(), offer_.parts.end(), std::uint64_t{0});
}

void Admission::on_snapshot_request(Seat from, const schema::SnapshotRequest& request, std::uint64_t now_ms) {
  if (phase_ != Phase::kSending || from != seat_) return;
  heard_ms_ = now_ms;
  sent_bytes_ = std::min(request.from, snapshot_bytes());
  out_.emit(SendSnapshotChunks{run_.run_key, from, request});
}

void Admission::on_snapshot_done(Seat from, const schema::SnapshotDone& done, ViewChange& change,
                                 std::uint64_t now_ms) {
  if (phase_ != Phase::kSending || from != seat_ || done.state != offer_.state || change.in_progress()) return;
  phase_ = Phase::kChanging;
  sent_bytes_ = snapshot_bytes();
  report_progress(change.view(), now_ms);
  change.admit({.member = {.since = change.view().number() + 1,
                           .weight = weight_of(choice_, peers_.name(seat_), weight_of_node(peers_.name(seat_))),
                           .incarnation = incarnation_,
                           .directory = directory_},
                .step = offer_.state.step,
                .name = peers_.name(seat_)},
               now_ms);
}

void Admission::report_progress(const View& view, std::uint64_t now_ms) {
  reported_ms_ = now_ms;
  const std::uint64_t of = snapshot_bytes(), percent = of == 0 ? 0 : 100 * sent_bytes_ / of;
  const std::string why = peers_.name(seat_) + " joins: " + std::to_string(percent) + " % of " +
                          std::to_string((of + 500'000) / 1'000'000) + " MB, the others wait " +
                          rounded_seconds_text(now_ms - since_ms_);
  std::vector<Seat> to = view.seats();
  std::erase(to, peers_.self());
  to.push_back(seat_);
  out_.send(std::move(to), run_.run_key, view.number(),
            schema::Quiesce{peers_.name(seat_), sent_bytes_, of, false, why});
  out_.emit(NoteJoin{run_.run_key, why});
}

// The members continue, the joiner asks again.
void Admission::release(const View& view, const std::string& why) {
  std::vector<Seat> to = view.seats();
  std::erase(to, peers_.self());
  if (phase_ != Phase::kNone && !view.has(seat_)) to.push_back(seat_);
  phase_ = Phase::kNone;
  out_.send(std::move(to), run_.run_key, view.number(),
            schema::Quiesce{.node = peers_.name(seat_), .over = true, .why = why});
  out_.emit(ReleaseRun{run_.run_key, why});
}

void Admission::cancel(const ViewChange& change, const std::string& why) {
  if (may_admit(change) && phase_ != Phase::kNone && phase_ != Phase::kChanging) release(change.view(), why);
}

void Admission::on_peer_lost(Seat peer, const ViewChange& change) {
  if (phase_ == Phase::kNone || seat_ != peer || phase_ == Phase::kChanging || change.in_progress()) return;
  release(change.view(),
          peers_.own_name() + " lost " + peers_.name(peer) + ", which was about to " + (is_join_ ? "join" : "leave"));
}

// The new view ends the quiesce.
void Admission::on_view_installed() { phase_ = Phase::kNone; }

void Admission::tick(const ViewChange& change, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || phase_ == Phase::kQuiescing || phase_ == Phase::kChanging || change.in_progress())
    return;
  const std::string& name = peers_.name(seat_);
  if (now_ms >= heard_ms_ + options_.silence_ms)
    return release(change.view(), name + " was about to " + (is_join_ ? "join" : "leave") + " and was silent for " +
                                      seconds_text(options_.silence_ms));
  if (phase_ == Phase::kLeaving) return;
  const std::uint64_t ms = now_ms - since_ms_;
  const bool judged = ms >= kRateMs && sent_bytes_ > 0;
  if (const std::uint64_t whole_ms = judged ? ms * snapshot_bytes() / sent_bytes_ : ms;
      whole_ms > options_.join_limit_ms)
    return release(change.view(), "sending " + name + " the state would take " + rounded_seconds_text(whole_ms) +
                                      ", and join-limit is " + seconds_text(options_.join_limit_ms));
  if (now_ms >= reported_ms_ + kReportMs) report_progress(change.view(), now_ms);
}

}  // namespace tg::daemon
