#include "daemon/membership/liveness.h"

#include <algorithm>
#include <utility>

#include "daemon/membership/duration_text.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kLateTickMs = 500;  // ticks come every 100 ms; in a longer gap this process did not run
constexpr std::uint64_t kAliveMs = 3'000;   // for status
constexpr std::uint64_t kBeatlessFactor = 3;
constexpr std::uint64_t kWaitingFactor = 2;  // so that the member that the others wait for is suspected first

// Idle inside a run: the member's own work is done and it waits for the others' reports.
bool waits_for_others(schema::Phase phase) {
  return phase == schema::Phase::kScalerWait || phase == schema::Phase::kReduce || phase == schema::Phase::kGather ||
         phase == schema::Phase::kIdle;
}

std::string place(const schema::Heartbeat& beat) {
  return std::string(to_word(beat.phase)) + " of step " + std::to_string(beat.step);
}

}  // namespace

Liveness::Liveness(LivenessOptions options) : options_(std::move(options)) {
  TG_CHECK(options_.self.index() < options_.names.known(), options_.self.index(), options_.names.known());
  members_.resize(options_.names.kMaxNodes);
}

void Liveness::on_data(Seat peer, std::uint64_t now_ms) {
  TG_CHECK(peer.index() < members_.size(), peer.index());
  members_[peer].heard_ms = now_ms;
  members_[peer].quiet_ms = std::max(members_[peer].quiet_ms, now_ms);
}

void Liveness::on_heartbeat(Seat peer, const schema::Heartbeat& beat, std::uint64_t now_ms) {
  on_data(peer, now_ms);
  if (!watching_) return;
  Member& member = members_[peer];
  if (beat.run_id != run_id_) {
    member.elsewhere_ms = now_ms;
    return;
  }
  const bool moved = !member.beat || member.beat->phase != beat.phase || member.beat->step != beat.step ||
                     member.beat->progress != beat.progress;
  if (moved) member.progress_ms = std::max(member.progress_ms, now_ms);
  if (moved && beat.phase == schema::Phase::kPrepare) member.prepares = true;
  member.in_run_ms = std::max(member.in_run_ms, now_ms);
  member.beat = beat;
}

std::vector<Seat> Liveness::take_prepare_progress() {
  std::vector<Seat> seats;
  for (const Seat seat : members_.places())
    if (std::exchange(members_[seat].prepares, false)) seats.push_back(seat);
  return seats;
}

void Liveness::watch(std::string run_id, std::uint64_t step_timeout_ms, std::uint64_t now_ms,
                     const Per<Seat, bool>& members) {
  run_id_ = std::move(run_id);
  step_timeout_ms_ = step_timeout_ms;
  watching_ = true;
  for (const Seat seat : members_.places()) {
    Member& member = members_[seat];
    member.quiet_ms = member.in_run_ms = member.progress_ms = now_ms;
    member.elsewhere_ms = 0;
    member.beat.reset();
    const bool asked =
        members.empty() ? options_.names.is_listed(seat) : seat.index() < members.size() && members[seat];
    member.suspected = !asked;
    member.prepares = false;
  }
}

void Liveness::set_step_timeout(std::uint64_t step_timeout_ms) { step_timeout_ms_ = step_timeout_ms; }

void Liveness::unwatch() { watching_ = false; }

std::vector<Suspicion> Liveness::tick(std::uint64_t now_ms) {
  const std::uint64_t gap = ticked_ms_ && now_ms > *ticked_ms_ ? now_ms - *ticked_ms_ : 0;
  ticked_ms_ = now_ms;
  std::vector<Suspicion> verdicts;
  if (!watching_) return verdicts;
  if (gap > kLateTickMs) {
    for (Member& member : members_) {
      for (std::uint64_t* since : {&member.quiet_ms, &member.in_run_ms, &member.progress_ms})
        *since = std::max(*since, std::min(*since + gap, now_ms));
    }
  }
  for (const Seat seat : members_.places()) {
    if (members_[seat].suspected) continue;
    std::string message = suspicion(seat, now_ms);
    if (message.empty()) continue;
    members_[seat].suspected = true;
    verdicts.push_back({seat, std::move(message), run_id_});
  }
  return verdicts;
}

std::string Liveness::suspicion(Seat seat, std::uint64_t now_ms) const {
  const Member& member = members_[seat];
  const std::string& name = options_.names[seat];
  const auto passed = [now_ms](std::uint64_t since, std::uint64_t limit) {
    return now_ms >= since && now_ms - since >= limit;
  };
  if (seat != options_.self && passed(member.quiet_ms, options_.peer_timeout_ms)) {
    return "no sign of life from " + name + " for " + seconds_text(options_.peer_timeout_ms) +
           (member.beat ? " (its last heartbeat said " + place(*member.beat) + ")"
                        : " (no heartbeat since the run began)");
  }
  // Data may arrive for a moment after the last beat: only a peer heard since then is up.
  const bool up = !passed(member.quiet_ms, options_.peer_timeout_ms / 2);
  if (seat != options_.self && up && member.elsewhere_ms > member.in_run_ms &&
      passed(member.in_run_ms, options_.peer_timeout_ms))
    return name + " is up, but not in run " + run_id_ + "; was it restarted?";
  if (seat != options_.self && up && passed(member.in_run_ms, kBeatlessFactor * options_.peer_timeout_ms))
    return name + " is up, but sent no heartbeat for " + seconds_text(kBeatlessFactor * options_.peer_timeout_ms) +
           "; does it reach the control port of " + options_.names[options_.self] + "?";
  // Preparation has a deadline of its own (Membership), which progress puts off.
  if (!member.beat || member.beat->phase == schema::Phase::kPrepare) return "";
  if (waits_for_others(member.beat->phase)) {
    if (!passed(member.progress_ms, kWaitingFactor * step_timeout_ms_)) return "";
    return name + " received nothing in " + place(*member.beat) + " for " +
           seconds_text(kWaitingFactor * step_timeout_ms_);
  }
  if (!passed(member.progress_ms, step_timeout_ms_)) return "";
  return name + " is stuck in " + place(*member.beat) + " for " + seconds_text(step_timeout_ms_);
}

bool Liveness::is_alive(Seat peer, std::uint64_t now_ms) const {
  TG_CHECK(peer.index() < members_.size(), peer.index());
  if (peer == options_.self) return true;
  const std::optional<std::uint64_t>& heard_ms = members_[peer].heard_ms;
  return heard_ms && now_ms < *heard_ms + std::min(options_.peer_timeout_ms, kAliveMs);
}

std::optional<PhaseTime> Liveness::phase_time(Seat seat, std::uint64_t now_ms) const {
  TG_CHECK(seat.index() < members_.size(), seat.index());
  const Member& member = members_[seat];
  if (!watching_ || !member.beat) return std::nullopt;
  const auto since = [now_ms](std::uint64_t ms) { return now_ms > ms ? now_ms - ms : 0; };
  const schema::Phase phase = member.beat->phase;
  if (phase == schema::Phase::kPrepare) return PhaseTime{phase, since(member.progress_ms), schema::kPrepareMs};
  const bool waits = waits_for_others(phase);
  return PhaseTime{phase, since(member.progress_ms), waits ? step_timeout_ms_ * 3 / 2 : step_timeout_ms_};
}

}  // namespace tg::daemon
