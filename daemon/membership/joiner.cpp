#include "daemon/membership/joiner.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {

void Joiner::on_run_discovered(const std::string& run_id, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone) {
    phase_ = Phase::kAsking;
    run_id_ = run_id;
    next_request_ms_ = now_ms;
  }
  if (run_id == run_id_) seen_ms_ = now_ms;
}

void Joiner::send_join(std::uint64_t now_ms) {
  next_request_ms_ = now_ms + kRepeatMs;
  schema::Join join{
      .run_id = run_id_, .prepared = phase_ == Phase::kReady, .vote = vote_, .reachable = peers_.connected_names()};
  join.vote.directory = self_.directory;
  join.vote.incarnation = self_.incarnation;
  std::vector<Seat> to = peers_.others();
  std::erase_if(to, [this](Seat seat) { return !peers_.connected(seat); });
  out_.send(std::move(to), 0, 0, std::move(join));
}

void Joiner::on_invite(Seat from, std::uint64_t run_key, const schema::Invite& invite, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || invite.run_id != run_id_ || invite.weights.size() != invite.view.names.size() ||
      invite.view.members.empty() || !peers_.unknown_in(invite.view).empty())
    return;
  const View view(invite.view, peers_.names());  // its senior invites a node that is no voter of it
  if (view.by_seniority().front() != from || view.has_voter(peers_.self(), self_.directory)) return;
  if (has_reserved() && (run_.run_key != run_key || run_.spec != invite.spec)) {
    drop();  // the run was resumed under another run key
    return on_run_discovered(invite.run_id, now_ms);
  }
  if (phase_ == Phase::kHasSnapshot) return;
  donor_ = from;
  view_ = invite.view;
  choice_ = invite.choice;
  if (has_reserved()) return;
  run_ = {.run_key = run_key, .id = invite.run_id, .spec = invite.spec};
  run_.weights = peers_.weights();
  run_.names = invite.view.names;
  for (std::size_t i = 0; i < run_.names.size(); ++i)
    if (const auto seat = peers_.seat_of(run_.names[i])) run_.weights[*seat] = invite.weights[i];
  run_.global_batch = invite.global_batch;
  run_.first_weights = weights_in(choice_);
  if (invite.lineage > 1) run_.resume = schema::Resume{.lineage = invite.lineage, .from_step = {}};
  schema::NextView next{.number = view_.number + 1, .members = view_.members, .names = view_.names};
  const std::uint32_t own = run_seat(next.names, peers_.own_name());
  const auto place = std::ranges::lower_bound(next.members, own, {}, &schema::ViewMember::seat);
  if (place == next.members.end() || place->seat != own)
    next.members.insert(place,
                        {.seat = own, .weight = weight_of(choice_, peers_.own_name(), run_.weights[peers_.self()])});
  phase_ = Phase::kPreparing;
  out_.emit(PrepareRun{run_, View(next, peers_.names()), true});
}

void Joiner::on_prepared(std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms) {
  if (phase_ != Phase::kPreparing || run_.run_key != run_key) return;
  if (!vote.accepted) return on_failed(run_key, vote.message, now_ms);
  vote_ = vote;
  phase_ = Phase::kReady;
  send_join(now_ms);
}

void Joiner::on_quiesce(Seat from, std::uint64_t run_key, const schema::Quiesce& quiesce, std::uint64_t now_ms) {
  if (phase_ == Phase::kNone || quiesce.node != peers_.own_name()) return;
  if (has_reserved() && run_.run_key != run_key) return;
  out_.emit(NoteJoin{run_key, quiesce.why});
  if (from == donor_) heard_ms_ = now_ms;
  if (!quiesce.over) return;
  next_request_ms_ = now_ms + kRefusedMs;
  if (from == donor_ && (phase_ == Phase::kReceiving || phase_ == Phase::kHasSnapshot)) retry(next_request_ms_);
}

void Joiner::on_snapshot_offer(Seat from, std::uint64_t run_key, std::uint32_t view, const schema::SnapshotOffer& offer,
                               std::uint64_t now_ms) {
  if ((phase_ != Phase::kReady && phase_ != Phase::kReceiving) || run_.run_key != run_key || view != view_.number ||
      from != donor_)
    return;
  phase_ = Phase::kReceiving;
  heard_ms_ = now_ms;
  state_ = offer.state;
  out_.emit(ReceiveSnapshot{run_key, from, view, offer});
}

bool Joiner::on_snapshot_done(std::uint64_t run_key, std::uint64_t now_ms) {
  if (phase_ != Phase::kReceiving || run_.run_key != run_key) return false;
  phase_ = Phase::kHasSnapshot;
  snapshot_ms_ = now_ms;
  send_done(now_ms);
  return true;
}

// Sent to all members: one that knows a newer view answers with it.
void Joiner::send_done(std::uint64_t now_ms) {
  next_request_ms_ = now_ms + kRepeatMs;
  out_.send(View(view_, peers_.names()).seats(), run_.run_key, view_.number,
            schema::SnapshotDone{state_, peers_.connected_names()});
}

void Joiner::on_failed(std::uint64_t run_key, const std::string& why, std::uint64_t now_ms) {
  if (!is(run_key)) return;
  out_.emit(NoteJoin{run_key, why});
  drop();
  phase_ = Phase::kAsking;
  seen_ms_ = now_ms;
  next_request_ms_ = now_ms + kFailedMs;
}

void Joiner::retry(std::uint64_t now_ms) {
  if (phase_ != Phase::kReceiving && phase_ != Phase::kHasSnapshot) return;
  phase_ = Phase::kReady;
  next_request_ms_ = now_ms;
}

void Joiner::drop() {
  const bool reserved = has_reserved();
  phase_ = Phase::kNone;
  vote_ = {};
  if (reserved) out_.emit(DropRun{run_.run_key});
}

void Joiner::tick(std::uint64_t now_ms) {
  if (phase_ == Phase::kNone) return;
  if (now_ms >= seen_ms_ + kOverMs) return drop();
  if (phase_ == Phase::kReceiving && now_ms >= heard_ms_ + kSilenceMs) retry(now_ms);
  const bool asks = phase_ == Phase::kAsking || phase_ == Phase::kReady;
  if (asks && now_ms >= next_request_ms_) send_join(now_ms);
  if (phase_ == Phase::kHasSnapshot && now_ms >= next_request_ms_) send_done(now_ms);
}

}  // namespace tg::daemon
