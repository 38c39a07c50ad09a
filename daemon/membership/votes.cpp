#include "daemon/membership/votes.h"

#include "kernels/base/check.h"
#include "kernels/base/hex.h"
#include "schema/options/job.h"

namespace tg::daemon {
namespace {

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
    {"initial states differ",
     "run the same build of tgd on every node; if the job sets initial, give every node the same file",
     &schema::Vote::state_hash},
};

}  // namespace

std::optional<schema::Fail> Votes::take(Seat from, const schema::Vote& vote) {
  if (!vote.accepted) {
    const std::string message = vote.message.empty() ? names_[from] + " refused the run" : vote.message;
    return schema::Fail{vote.kind, names_[from], "prepare", message};
  }
  if (votes_[from]) return std::nullopt;
  votes_[from] = vote;
  return difference();
}

// A difference between the first seat that has voted and another one.
std::optional<schema::Fail> Votes::difference() const {
  for (const Compared& compared : kCompared) {
    std::optional<Seat> reference;
    for (const Seat seat : votes_.places()) {
      if (!votes_[seat]) continue;
      if (!reference) reference = seat;
      const std::uint64_t theirs = (*votes_[seat]).*compared.hash, ours = (*votes_[*reference]).*compared.hash;
      if (theirs == ours) continue;
      return schema::Fail{ErrorKind::kInvalidJob, names_[seat], "prepare",
                          std::string(compared.what) + ": " + names_[*reference] + " has " + hex_digest(ours) + ", " +
                              names_[seat] + " has " + hex_digest(theirs) + "; " + compared.advice};
    }
  }
  return std::nullopt;
}

std::vector<Seat> Votes::missing() const {
  std::vector<Seat> seats;
  for (const Seat seat : votes_.places())
    if (!votes_[seat]) seats.push_back(seat);
  return seats;
}

Result<Choice> Votes::decide(const std::string& spec) const {
  const Result<schema::JobSpec> job = schema::parse_job(spec, "job");
  if (!job) return job.error();
  std::vector<schema::Vote> votes;
  for (const std::optional<schema::Vote>& vote : votes_) {
    TG_CHECK(vote, votes.size());
    votes.push_back(*vote);
  }
  return choose_exchange(asked_of(*job), votes);
}

}  // namespace tg::daemon
