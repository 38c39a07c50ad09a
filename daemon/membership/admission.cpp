#include "daemon/membership/admission.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/membership/votes.h"
#include "daemon/membership/words.h"

namespace tg::daemon {

// --- who wants in ---

void Admission::on(Seat from, const schema::Join& join, const ViewChange& change, bool stops, std::uint64_t now_ms) {
  const View& view = change.view();
  if (!leads(change) || stops || view.has(from)) return;
  if (phase_ != Phase::kNone && seat_ == from && incarnation_ == join.vote.incarnation) return;
  if (phase_ != Phase::kNone && seat_ == from) give_up(view, peers_.name(from) + " was restarted");
  if (const std::string why = why_not(from, join, view, now_ms); !why.empty()) return refuse(from, view, why);
  invite(from, change);
  if (!join.prepared) return;
  Pause& pause = pauses_[from];
  pause.ms =
      pause.ms == 0 || now_ms >= pause.until_ms + pause.ms ? kFirstPauseMs : std::min(2 * pause.ms, kLongestPauseMs);
  pause.until_ms = now_ms + pause.ms;
  directory_ = join.vote.directory;
  incarnation_ = join.vote.incarnation;
  done_ = 0;
  feed_ = {};
  hold(from, true, now_ms);
}

void Admission::on(Seat from, const schema::Leave&, const ViewChange& change, bool stops, std::uint64_t now_ms) {
  if (leads(change) && !stops && change.view().has(from) && phase_ == Phase::kNone) hold(from, false, now_ms);
}

bool Admission::leads(const ViewChange& change) const {
  return change.view().by_seniority().front() == peers_.self() && change.has_state() && !change.in_change();
}

void Admission::hold(Seat seat, bool comes, std::uint64_t now_ms) {
  phase_ = Phase::kHolding;
  seat_ = seat;
  comes_ = comes;
  since_ms_ = heard_ms_ = said_ms_ = now_ms;
  out_.emit(HoldRun{run_.key});
}

// "" if its turn has come, or it is to prepare.
std::string Admission::why_not(Seat from, const schema::Join& join, const View& view, std::uint64_t now_ms) const {
  if (options_.join_limit_ms == 0) return "join-limit is 0: nobody comes into this run";
  std::vector<Seat> unheard = view.seats();
  std::erase_if(unheard, [&](Seat seat) {
    return std::ranges::find(join.hears, seat.index()) != join.hears.end() && peers_.connected(from);
  });
  if (!unheard.empty()) return peers_.name(from) + " and " + peers_.names_of(unheard) + " do not hear each other";
  if (!join.prepared) return "";
  Votes votes(peers_.names());
  if (options_.names) votes.know(options_.names);
  schema::Vote theirs = join.vote;
  theirs.state_hash = options_.own.state_hash;
  votes.take(peers_.self(), options_.own);
  if (const std::optional<schema::Fail> cause = votes.take(from, theirs)) return cause->message;
  if (phase_ != Phase::kNone) return peers_.name(seat_) + " joins first";
  if (const std::uint64_t until = pauses_[from].until_ms; now_ms < until)
    return peers_.name(from) + " came in not long ago; it is let in again in " + about_seconds(until - now_ms);
  return "";
}

void Admission::refuse(Seat to, const View& view, const std::string& why) {
  out_.send({to}, run_.key, view.number(),
            schema::Hold{.seat = static_cast<std::uint32_t>(to.index()), .over = true, .why = why});
}

void Admission::invite(Seat to, const ViewChange& change) {
  out_.send({to}, run_.key, change.view().number(),
            schema::Invite{run_.id, run_.spec, run_.weights, options_.own.global_batch, run_.lineage(), change.newest(),
                           choice_});
}

// --- the hold ---

void Admission::held(const ViewChange& change, std::uint64_t now_ms) {
  if (!leads(change) || phase_ > Phase::kHolding) return;
  if (phase_ == Phase::kNone) return give_up(change.view(), "");  // whom it was for was lost before
  phase_ = comes_ ? Phase::kReading : Phase::kParting;
  since_ms_ = heard_ms_ = now_ms;
  if (comes_) return out_.emit(ReadPast{run_.key});
  if (seat_ == peers_.self()) return;
  const std::string why = peers_.name(seat_) + " leaves";
  out_.send({seat_}, run_.key, change.view().number(),
            schema::Hold{.seat = static_cast<std::uint32_t>(seat_.index()), .why = why});
}

void Admission::feeds(schema::Feed feed, const ViewChange& change, std::uint64_t now_ms) {
  if (phase_ != Phase::kReading) return;
  phase_ = Phase::kFeeding;
  feed_ = std::move(feed);
  heard_ms_ = now_ms;
  out_.send({seat_}, run_.key, change.view().number(), feed_);
  say(change.view(), now_ms);
}

std::uint64_t Admission::bytes() const {
  return std::accumulate(feed_.parts.begin(), feed_.parts.end(), std::uint64_t{0});
}

void Admission::on(Seat from, const schema::Want& want, std::uint64_t now_ms) {
  if (phase_ != Phase::kFeeding || from != seat_) return;
  heard_ms_ = now_ms;
  done_ = std::min(want.from, bytes());
  out_.emit(SendSlices{run_.key, from, want});
}

void Admission::on(Seat from, const schema::Fed& fed, ViewChange& change, std::uint64_t now_ms) {
  if (phase_ != Phase::kFeeding || from != seat_ || fed.state != feed_.state || change.in_change()) return;
  phase_ = Phase::kChanging;
  done_ = bytes();
  say(change.view(), now_ms);
  change.admit({.member = {.seat = static_cast<std::uint32_t>(seat_.index()),
                           .since = change.view().number() + 1,
                           .weight = weight_of(choice_, seat_, run_.weights[seat_]),
                           .incarnation = incarnation_,
                           .directory = directory_},
                .step = feed_.state.step,
                .name = peers_.name(seat_)},
               now_ms);
}

void Admission::say(const View& view, std::uint64_t now_ms) {
  said_ms_ = now_ms;
  const std::uint64_t of = bytes(), percent = of == 0 ? 0 : 100 * done_ / of;
  const std::string why = peers_.name(seat_) + " joins: " + std::to_string(percent) + " % of " +
                          std::to_string((of + 500'000) / 1'000'000) + " MB, the others wait " +
                          about_seconds(now_ms - since_ms_);
  std::vector<Seat> to = view.seats();
  std::erase(to, peers_.self());
  to.push_back(seat_);
  out_.send(std::move(to), run_.key, view.number(),
            schema::Hold{static_cast<std::uint32_t>(seat_.index()), done_, of, false, why});
  out_.emit(NoteHold{run_.key, why});
}

// All go on, the newcomer asks again.
void Admission::give_up(const View& view, const std::string& why) {
  std::vector<Seat> to = view.seats();
  std::erase(to, peers_.self());
  if (phase_ != Phase::kNone && !view.has(seat_)) to.push_back(seat_);
  phase_ = Phase::kNone;
  out_.send(std::move(to), run_.key, view.number(),
            schema::Hold{.seat = static_cast<std::uint32_t>(seat_.index()), .over = true, .why = why});
  out_.emit(GoOn{run_.key, why});
}

void Admission::end(const ViewChange& change, const std::string& why) {
  if (leads(change) && phase_ != Phase::kNone && phase_ != Phase::kChanging) give_up(change.view(), why);
}

void Admission::lost(Seat peer, const ViewChange& change) {
  if (phase_ == Phase::kNone || seat_ != peer || phase_ == Phase::kChanging || change.in_change()) return;
  give_up(change.view(),
          peers_.own_name() + " lost " + peers_.name(peer) + ", which was about to " + (comes_ ? "join" : "leave"));
}

// The change has made an end of the hold.
void Admission::installed() { phase_ = Phase::kNone; }

void Admission::tick(const ViewChange& change, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || phase_ == Phase::kHolding || phase_ == Phase::kChanging || change.in_change()) return;
  const std::string& name = peers_.name(seat_);
  if (now_ms >= heard_ms_ + options_.silence_ms)
    return give_up(change.view(), name + " was about to " + (comes_ ? "join" : "leave") + " and has said nothing for " +
                                      seconds_text(options_.silence_ms));
  if (phase_ == Phase::kParting) return;
  const std::uint64_t ms = now_ms - since_ms_;
  const bool judged = ms >= kJudgeMs && done_ > 0;
  if (const std::uint64_t whole_ms = judged ? ms * bytes() / done_ : ms; whole_ms > options_.join_limit_ms)
    return give_up(change.view(), "giving " + name + " the state would take " + about_seconds(whole_ms) +
                                      ", and join-limit is " + seconds_text(options_.join_limit_ms));
  if (now_ms >= said_ms_ + kSayMs) say(change.view(), now_ms);
}

}  // namespace tg::daemon
