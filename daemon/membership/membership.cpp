#include "daemon/membership/membership.h"

#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {

Membership::Membership(MembershipOptions options)
    : peers_(std::move(options.names), options.self),
      end_(peers_, out_, {options.blamed_timeout_ms, options.leaving_timeout_ms}),
      start_(peers_, out_, end_, {options.claim_timeout_ms, options.prepare_timeout_ms, options.proposer_timeout_ms}) {
  peers_.set_weight(options.self, options.weight);
}

std::vector<MembershipAction> Membership::take_actions() {
  for (AftermathAction& action : end_.aftermath().take_actions())
    std::visit([this](auto& one) { out_.emit(std::move(one)); }, action);
  return out_.take();
}

std::optional<schema::RunState> Membership::state() const {
  if (end_.active()) return end_.state();
  return start_.current() == nullptr ? std::nullopt : std::optional(start_.state());
}

void Membership::connection(Seat peer, bool up, std::uint64_t now_ms, bool rekeys) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  if (peers_.connected(peer) == up) return;
  peers_.set_connected(peer, up);
  if (up) {
    end_.aftermath().connected(peer);
    return start_.connected(now_ms);
  }
  rekeys ? start_.rekeys(peer, now_ms) : start_.disconnected(peer);
  end_.lost(peer, Cause::kLostConnection, peers_.own_name() + " lost the connection to " + peers_.name(peer), now_ms);
}

void Membership::weighs(Seat peer, std::uint16_t weight) {
  TG_CHECK(peers_.is_other(peer) && weight > 0, peer.index(), weight);
  peers_.set_weight(peer, weight);
}

void Membership::cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  start_.cannot_join(peer, why, now_ms);
}

void Membership::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  start_.start(token, std::move(run), now_ms);
}

void Membership::offered(std::uint64_t key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms) {
  start_.offered(key, std::move(offer), known_lineage, now_ms);
}

void Membership::prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms,
                          const engine::EachName& names) {
  start_.prepared(key, vote, now_ms, names);
}

void Membership::prepares(Seat seat, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(seat), seat.index());
  start_.prepares(seat, now_ms);
}

void Membership::frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                       std::uint64_t now_ms) {
  const std::uint64_t key = header.run;
  if (!peers_.is_other(from) || header.view != view_number(key)) return;
  const bool begun = end_.is(key);
  if (const auto* claim = std::get_if<schema::Claim>(&body)) start_.on_claim(from, key, *claim, now_ms);
  if (const auto* grant = std::get_if<schema::Grant>(&body); grant && from == ProposalRight::kGranter)
    start_.on_grant(key, *grant, now_ms);
  if (const auto* proposal = std::get_if<schema::Propose>(&body); proposal && !begun)
    start_.on_propose(from, key, *proposal, now_ms);
  if (const auto* offer = std::get_if<schema::Offer>(&body)) start_.on_offer(from, key, *offer, now_ms);
  if (const auto* vote = std::get_if<schema::Vote>(&body)) start_.on_vote(from, key, *vote);
  if (const auto* verdict = std::get_if<schema::Commit>(&body); verdict && !begun)
    start_.on_commit(from, key, *verdict);
  if (const auto* cause = std::get_if<schema::Fail>(&body)) {
    start_.on_fail(from, key, *cause);
    if (begun) end_.on_fail(*cause);
  }
  if (std::holds_alternative<schema::Goodbye>(body)) {
    start_.on_goodbye(from, key);
    if (begun) end_.on_goodbye(from);
  }
  // Of a run that is about to begin: its begin is on its way, or the reservation falls with a timeout.
  if (const auto* ended = std::get_if<schema::Ended>(&body); ended && !start_.is(key))
    end_.on_ended(from, key, *ended, now_ms);
}

void Membership::lost(Seat peer, const std::string& message, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer), peer.index());
  start_.lost(peer, message);
  end_.lost(peer, Cause::kSilence, message, now_ms);
}

Status Membership::stop(const std::string& run_id, std::uint64_t now_ms) {
  if (idle() || current()->id != run_id)
    return Error{ErrorKind::kNotFound, "no run " + run_id + " is in progress on " + peers_.own_name()};
  end_.active() ? end_.stop() : start_.stop(now_ms);
  return {};
}

void Membership::failed(const schema::Fail& cause, std::uint64_t /*now_ms*/) {
  start_.failed(cause);
  end_.failed(cause);
}

void Membership::finished(schema::RunState state, const std::string& reason, std::uint64_t /*now_ms*/) {
  end_.finished(state, reason);
}

void Membership::saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms) {
  end_.saved(key, own, now_ms);
}

void Membership::remember(std::uint64_t key, PastRun run) { end_.aftermath().add(key, std::move(run)); }

void Membership::stopping() { end_.stopping(); }

void Membership::peer_finished(Seat peer) {
  TG_CHECK(peers_.knows(peer), peer.index());
  end_.peer_finished(peer);
}

void Membership::shut_down(std::uint64_t now_ms) {
  if (std::exchange(shut_down_, true)) return;
  const std::uint64_t key = idle() ? 0 : current()->key;
  const bool begun = end_.active();
  start_.shut_down();
  end_.shut_down(now_ms);
  if (!begun) out_.send(peers_.others(), key, View::kFirst, schema::Goodbye{peers_.own_name() + " was shut down"});
}

void Membership::tick(std::uint64_t now_ms) {
  start_.tick(now_ms);
  end_.tick(now_ms);
}

}  // namespace tg::daemon
