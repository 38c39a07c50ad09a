// The proposer's half of Membership, and the granting of its right by the member of lowest rank.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/membership.h"
#include "daemon/membership/words.h"
#include "kernels/base/check.h"
#include "schema/options/job.h"

namespace tg::daemon {
namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// What members compare before a run, the first cause first: a model built from another job differs as well.
struct Compared {
  const char* what;
  const char* advice;
  std::uint64_t schema::Vote::*hash;
};
constexpr Compared kCompared[] = {
    {"jobs differ", "run the same build of tgd on every node", &schema::Vote::spec_hash},
    {"models differ", "run the same build of tgd on every node", &schema::Vote::model_hash},
    {"data differ", "give every node the same files", &schema::Vote::data_hash},
    {"initial states differ", "run the same build of tgd on every node", &schema::Vote::state_hash},
};

}  // namespace

void Membership::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  const auto refuse = [&](const std::string& message) {
    act(AnswerStart{token, run.id, Error{ErrorKind::kRefused, message}});
  };
  if (shut_down_) return refuse(own_name() + " is being shut down");
  if (!idle() || holder_) {
    const std::string taken = taken_message();
    return refuse(!taken.empty() ? taken
                                 : "run " + run_.id + " is already PENDING, started at " + own_name() +
                                       "; wait for it, or stop it: tgctl stop " + run_.id);
  }
  const std::uint64_t deadline_ms = now_ms + run.start_timeout_ms;
  reserve(Phase::kConnecting, std::move(run), options_.self, deadline_ms);
  token_ = token;
  start_deadline_ms_ = deadline_ms;
  try_to_claim(now_ms);
}

void Membership::try_to_claim(std::uint64_t now_ms) {
  if (!disconnected().empty()) return;
  if (options_.self != kGranter) {
    phase_ = Phase::kClaiming;
    deadline_ms_ = now_ms + options_.claim_timeout_ms;
    return send({kGranter}, run_.key, schema::Claim{run_.id});
  }
  const std::string taken = taken_message();
  if (!taken.empty()) return refuse_own_start(taken);
  propose(now_ms);
}

void Membership::on_claim(Rank from, std::uint64_t key, const schema::Claim& claim, std::uint64_t now_ms) {
  if (options_.self != kGranter) return;
  const bool again = holder_ && holder_->key == key && holder_->rank == from;
  const std::string taken = shut_down_ ? own_name() + " is being shut down" : again ? "" : taken_message();
  if (taken.empty()) holder_ = Holder{key, claim.run_id, from, now_ms + options_.claim_timeout_ms};
  send({from}, key, schema::Grant{taken.empty(), taken});
}

void Membership::on_grant(std::uint64_t key, const schema::Grant& grant, std::uint64_t now_ms) {
  if (!current_is(key) || phase_ != Phase::kClaiming) {
    if (grant.granted && !current_is(key)) give_grant_back(key);
    return;
  }
  if (!grant.granted) return refuse_own_start(grant.message);
  if (disconnected().empty()) return propose(now_ms);
  give_grant_back(key);
  phase_ = Phase::kConnecting;
  deadline_ms_ = start_deadline_ms_;
}

void Membership::propose(std::uint64_t now_ms) {
  phase_ = Phase::kProposing;
  deadline_ms_ = now_ms + options_.prepare_timeout_ms;
  send(others(), run_.key, schema::Propose{run_.id, run_.spec});
  act(PrepareRun{run_});
}

void Membership::give_grant_back(std::uint64_t key) {
  if (options_.self == kGranter) return;
  send({kGranter}, key, schema::Fail{ErrorKind::kRefused, own_name(), "claim", "the start was withdrawn"});
}

void Membership::refuse_own_start(const std::string& message) {
  answer({ErrorKind::kRefused, message});
  become_idle();
  act(DropRun{run_.key});
}

// A run that never got as far as a proposal is recorded where it was asked for.
void Membership::end_pending(schema::RunState state, ErrorKind kind, const std::string& reason) {
  if (phase_ == Phase::kClaiming) give_grant_back(run_.key);
  // Whoever gets the answer finds the end recorded.
  const std::optional<std::uint64_t> token = std::exchange(token_, std::nullopt);
  end_run(state, reason);
  if (token) act(AnswerStart{*token, run_.id, Error{kind, reason}});
}

void Membership::fail_proposal(const schema::Fail& cause) {
  send(others(), run_.key, cause);
  answer({cause.kind, cause.message});
  drop();
}

void Membership::take_vote(Rank from, const schema::Vote& vote) {
  if (!vote.accepted) {
    const std::string message = vote.message.empty() ? name(from) + " refused the run" : vote.message;
    return fail_proposal({vote.kind, name(from), "prepare", message});
  }
  if (votes_[from]) return;
  votes_[from] = vote;
  const Rank reference = static_cast<Rank>(
      std::find_if(votes_.begin(), votes_.end(), [](const auto& one) { return one.has_value(); }) - votes_.begin());
  for (const Compared& compared : kCompared) {
    for (Rank rank = reference + 1; rank < votes_.size(); ++rank) {
      if (!votes_[rank]) continue;
      const std::uint64_t theirs = (*votes_[rank]).*compared.hash, ours = (*votes_[reference]).*compared.hash;
      if (theirs == ours) continue;
      return fail_proposal({ErrorKind::kInvalidJob, name(rank), "prepare",
                            std::string(compared.what) + ": " + name(reference) + " has " + hex(ours) + ", " +
                                name(rank) + " has " + hex(theirs) + "; " + compared.advice});
    }
  }
  if (std::all_of(votes_.begin(), votes_.end(), [](const auto& one) { return one.has_value(); })) commit();
}

void Membership::commit() {
  const Result<schema::JobSpec> spec = schema::parse_job(run_.spec, "job");
  if (!spec.ok()) return fail_proposal({spec.error().kind, own_name(), "prepare", spec.error().message});
  std::vector<schema::Vote> votes;
  for (const auto& vote : votes_) votes.push_back(*vote);
  Choice choice = choose_exchange(asked_of(*spec), votes);
  send(others(), run_.key, choice.commit);
  begin(choice.commit, std::move(choice.why));
  act(AnswerStart{*token_, run_.id, Status()});
  token_.reset();
}

}  // namespace tg::daemon
