#include "daemon/membership/joining.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {

void Joining::is_on(const std::string& run_id, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone) {
    phase_ = Phase::kAsking;
    run_id_ = run_id;
    next_ms_ = now_ms;
  }
  if (run_id == run_id_) on_ms_ = now_ms;
}

std::vector<std::uint32_t> Joining::hears() const {
  std::vector<std::uint32_t> seats;
  for (const Seat peer : peers_.others())
    if (peers_.connected(peer)) seats.push_back(static_cast<std::uint32_t>(peer.index()));
  return seats;
}

void Joining::ask(std::uint64_t now_ms) {
  next_ms_ = now_ms + kAgainMs;
  schema::Join join{.run_id = run_id_, .prepared = phase_ == Phase::kReady, .vote = vote_, .hears = hears()};
  join.vote.directory = self_.directory;
  join.vote.incarnation = self_.incarnation;
  std::vector<Seat> to = peers_.others();
  std::erase_if(to, [this](Seat seat) { return !peers_.connected(seat); });
  out_.send(std::move(to), 0, 0, std::move(join));
}

void Joining::on(Seat from, std::uint64_t key, const schema::Invite& invite, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || invite.run_id != run_id_ || invite.weights.size() != peers_.size() ||
      invite.view.members.empty() || !peers_.knows(Seat(invite.view.members.back().seat)))
    return;
  if (prepares() && (run_.key != key || run_.spec != invite.spec)) {
    drop();  // it goes on under another key
    return is_on(invite.run_id, now_ms);
  }
  if (phase_ == Phase::kFed) return;
  host_ = from;
  view_ = invite.view;
  choice_ = invite.choice;
  if (prepares()) return;
  run_ = {.key = key, .id = invite.run_id, .spec = invite.spec};
  run_.weights = Per<Seat, std::uint16_t>(invite.weights.begin(), invite.weights.end());
  run_.global_batch = invite.global_batch;
  if (invite.lineage > 1) run_.resume = schema::Resume{.lineage = invite.lineage, .from_step = {}};
  std::vector<schema::ViewMember> members = view_.members;
  const auto place = std::ranges::lower_bound(members, peers_.self().index(), {}, &schema::ViewMember::seat);
  if (place == members.end() || place->seat != peers_.self().index())
    members.insert(place, {.seat = static_cast<std::uint32_t>(peers_.self().index()),
                           .weight = weight_of(choice_, peers_.self(), run_.weights[peers_.self()])});
  phase_ = Phase::kPreparing;
  out_.emit(PrepareRun{run_, View(view_.number + 1, std::move(members)), true});
}

void Joining::prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms) {
  if (phase_ != Phase::kPreparing || run_.key != key) return;
  if (!vote.accepted) return failed(key, vote.message, now_ms);
  vote_ = vote;
  phase_ = Phase::kReady;
  ask(now_ms);
}

void Joining::on(Seat from, std::uint64_t key, const schema::Hold& hold, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || hold.seat != peers_.self().index()) return;
  if (prepares() && run_.key != key) return;
  out_.emit(NoteHold{key, hold.why});
  if (from == host_) heard_ms_ = now_ms;
  if (!hold.over) return;
  next_ms_ = now_ms + kRefusedMs;
  if (from == host_ && (phase_ == Phase::kFeeding || phase_ == Phase::kFed)) again(next_ms_);
}

void Joining::on(Seat from, std::uint64_t key, std::uint32_t view, const schema::Feed& feed, std::uint64_t now_ms) {
  if ((phase_ != Phase::kReady && phase_ != Phase::kFeeding) || run_.key != key || view != view_.number) return;
  phase_ = Phase::kFeeding;
  host_ = from;
  heard_ms_ = now_ms;
  state_ = feed.state;
  out_.emit(TakeFeed{key, from, view, feed});
}

bool Joining::fed(std::uint64_t key, std::uint64_t now_ms) {
  if (phase_ != Phase::kFeeding || run_.key != key) return false;
  phase_ = Phase::kFed;
  fed_ms_ = now_ms;
  tell(now_ms);
  return true;
}

// To all members: one that knows a newer view says so.
void Joining::tell(std::uint64_t now_ms) {
  next_ms_ = now_ms + kAgainMs;
  out_.send(View(view_).seats(), run_.key, view_.number, schema::Fed{state_, hears()});
}

void Joining::failed(std::uint64_t key, const std::string& why, std::uint64_t now_ms) {
  if (!is(key)) return;
  out_.emit(NoteHold{key, why});
  drop();
  phase_ = Phase::kAsking;
  on_ms_ = now_ms;
  next_ms_ = now_ms + kFailedMs;
}

void Joining::again(std::uint64_t now_ms) {
  if (phase_ != Phase::kFeeding && phase_ != Phase::kFed) return;
  phase_ = Phase::kReady;
  next_ms_ = now_ms;
}

void Joining::drop() {
  const bool reserved = prepares();
  phase_ = Phase::kNone;
  vote_ = {};
  if (reserved) out_.emit(DropRun{run_.key});
}

void Joining::tick(std::uint64_t now_ms) {
  if (phase_ == Phase::kNone) return;
  if (now_ms >= on_ms_ + kOverMs) return drop();
  if (phase_ == Phase::kFeeding && now_ms >= heard_ms_ + kSilenceMs) again(now_ms);
  const bool asks = phase_ == Phase::kAsking || phase_ == Phase::kReady;
  if (asks && now_ms >= next_ms_) ask(now_ms);
  if (phase_ == Phase::kFed && now_ms >= next_ms_) tell(now_ms);
}

}  // namespace tg::daemon
