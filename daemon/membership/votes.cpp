#include "daemon/membership/votes.h"

#include "daemon/membership/split_by_speed.h"
#include "daemon/membership/view.h"
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

// The first difference between the first seat that has voted and another.
std::optional<schema::Fail> Votes::difference() const {
  for (const Compared& compared : kCompared) {
    const bool data = compared.hash == &schema::Vote::data_hash;
    if (data && !data_names_) return std::nullopt;
    std::optional<Seat> reference;
    for (const Seat seat : votes_.places()) {
      if (!votes_[seat]) continue;
      if (!reference) reference = seat;
      if ((*votes_[seat]).*compared.hash == (*votes_[*reference]).*compared.hash) continue;
      const auto has = [&](Seat one) {
        const auto files = data ? engine::FileSums::parse(votes_[one]->message) : std::nullopt;
        return names_[one] + " has " + hex_digest((*votes_[one]).*compared.hash) +
               (files ? " (" + files->counts() + ")" : "");
      };
      return schema::Fail{ErrorKind::kInvalidJob, names_[seat], "prepare",
                          std::string(compared.what) + ": " + has(*reference) + ", " + has(seat) +
                              (data ? differing_files(*reference, seat) : "") + "; " + compared.advice};
    }
  }
  return std::nullopt;
}

// "" if a vote does not list its files.
std::string Votes::differing_files(Seat one, Seat other) const {
  const auto first = engine::FileSums::parse(votes_[one]->message);
  const auto second = engine::FileSums::parse(votes_[other]->message);
  if (!first || !second) return "";
  const std::string files = engine::FileSums::difference(*first, *second, data_names_);
  return files.empty() ? "; the files are the same: the classes' names differ, or which files are damaged"
                       : "; " + files;
}

std::vector<Seat> Votes::missing() const {
  return votes_.places_where([this](Seat seat) { return !votes_[seat]; });
}

Result<ExchangeChoice> Votes::decide(const RunIdentity& run, const View& view) const {
  const Result<schema::JobSpec> job = schema::parse_job(run.spec, "job");
  if (!job) return job.error();
  Per<Seat, schema::Vote> votes;  // the members', by rank
  for (const Seat seat : view.seats()) votes.push_back(votes_[seat].value());
  ExchangeChoice choice = choose_exchange(exchange_preference(*job), votes);
  choice.commit.members = view.members();
  choice.commit.names = view.names();
  const bool by_speed = job->split == schema::Split::kSpeed && !run.resume;
  const Per<Seat, std::uint16_t> weights = by_speed ? weights_by_speed(*job, votes) : Per<Seat, std::uint16_t>();
  for (const Seat place : votes.places()) {
    schema::ViewMember& member = choice.commit.members[place.index()];
    if (by_speed) member.weight = weights[place];
    member.incarnation = votes[place].incarnation;
    member.directory = votes[place].directory;
  }
  return choice;
}

}  // namespace tg::daemon
