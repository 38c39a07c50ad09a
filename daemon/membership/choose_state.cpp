#include "daemon/membership/choose_state.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/base/hex.h"

namespace tg::daemon {
namespace {

using schema::Offer;
using schema::StateId;

constexpr std::size_t kMaxNodesNamed = 8, kMaxStepsNamed = 8;

auto place_of(const StateId& state) { return std::tie(state.lineage, state.view, state.step); }

bool same_place(const StateId& a, const StateId& b) { return place_of(a) == place_of(b); }

const StateId* find(const Offer& offer, const StateId& place) {
  const auto found = std::ranges::find_if(offer.states, [&](const StateId& one) { return same_place(one, place); });
  return found == offer.states.end() ? nullptr : &*found;
}

// The places of the states that all these members have, newest first.
std::vector<StateId> shared(const Per<Seat, Offer>& offers, const std::vector<Seat>& members) {
  std::vector<StateId> places;
  if (members.empty()) return places;
  for (const StateId& one : offers[members.front()].states)
    if (std::ranges::all_of(members, [&](Seat seat) { return find(offers[seat], one) != nullptr; }))
      places.push_back(one);
  std::ranges::sort(places, std::greater<>{});
  return places;
}

auto branch_of(const StateId& state) { return std::tie(state.lineage, state.view); }

StateId newest_state(const Per<Seat, Offer>& offers) {
  StateId newest;
  for (const Offer& offer : offers)
    for (const StateId& one : offer.states) newest = std::max(newest, one);
  return newest;
}

// The nodes that resume if a state may be left to one: those with a state of the newest view, since with equal lineage
// and view no node has continued without the others; if they share none of it, those with the newest state.
std::vector<Seat> holders(const Per<Seat, Offer>& offers, bool joins) {
  const StateId newest = newest_state(offers);
  const std::vector<Seat> members = offers.places_where([&](Seat seat) {
    return std::ranges::any_of(offers[seat].states,
                               [&](const StateId& one) { return branch_of(one) == branch_of(newest); });
  });
  const std::vector<StateId> places = shared(offers, members);
  if (!joins || (!places.empty() && branch_of(places[0]) == branch_of(newest))) return members;
  return offers.places_where([&](Seat seat) { return find(offers[seat], newest) != nullptr; });
}

// "900, 600", the largest first
std::string steps_of(const std::vector<StateId>& states) {
  std::set<std::uint64_t, std::greater<>> steps;
  for (const StateId& state : states) steps.insert(state.step);
  std::string text;
  std::size_t named = 0;
  for (const std::uint64_t step : steps) {
    if (named++ == kMaxStepsNamed) return text + " and older ones";
    text += (text.empty() ? "" : ", ") + std::to_string(step);
  }
  return text;
}

// That with the newest view of the run.
const Offer& newest_of(const std::vector<Seat>& nodes, const Per<Seat, Offer>& offers) {
  return offers[*std::ranges::max_element(
      nodes, {}, [&](Seat seat) { return std::pair(offers[seat].lineage, offers[seat].view); })];
}

// The participants' offers.
struct Offered {
  const std::string& run_id;
  const std::vector<Seat>& nodes;
  const Per<Seat, Offer>& offers;
  const schema::NodeList& names;
  const Offer& newest = newest_of(nodes, offers);
};

// "node-a has 900, 600; node-b has none (why)"
std::string holdings(const Offered& all) {
  std::string text;
  std::size_t named = 0;
  for (const Seat seat : all.nodes) {
    if (named++ == kMaxNodesNamed)
      return text + "; and so on for " + std::to_string(all.nodes.size() - kMaxNodesNamed) + " more nodes";
    const Offer& offer = all.offers[seat];
    text += (text.empty() ? "" : "; ") + all.names[seat] + " has " +
            (offer.states.empty() ? "none" : "step " + steps_of(offer.states)) +
            (offer.problem.empty() ? "" : " (" + offer.problem + ")");
  }
  return text;
}

StateRefusal nothing(const Offered& all, const schema::Resume& asked, const std::vector<StateId>& places) {
  // A node without any state is what has to be mended.
  const auto bare = std::ranges::find_if(all.nodes, [&](Seat seat) { return all.offers[seat].states.empty(); });
  const std::string node = bare == all.nodes.end() ? "" : all.names[*bare];
  const std::string what = asked.from_step ? "the state of step " + std::to_string(*asked.from_step) : "a state";
  const std::string way =
      !places.empty() ? "all have step " + steps_of(places) + ": choose with --from"
      : node.empty()  ? "start a new run, or copy a state's file from one node's folder of this run to the others"
                      : "start a new run, or copy a state's file from another node's folder of this run there";
  return {node,
          {ErrorKind::kNotFound,
           "run " + all.run_id + " cannot resume: not every node has " + what + ": " + holdings(all) + "; " + way}};
}

StateRefusal only_the_beginning(const Offered& all) {
  const StateId newest = newest_state(all.offers);
  const auto lacks =
      std::ranges::find_if(all.nodes, [&](Seat seat) { return find(all.offers[seat], newest) == nullptr; });
  return {all.names[*lacks],
          {ErrorKind::kNotFound,
           "run " + all.run_id +
               " cannot resume: some nodes continued without the others, and all have only its beginning: " +
               holdings(all) +
               "; copy the newest state's file from one node's folder of this run to the others, or begin again with "
               "--from 0"}};
}

// The voters of the newest view that any participant knows; if none knows one, all participants.
std::vector<std::string> newest_voters(const Offered& all) {
  std::vector<std::string> voters;
  if (all.newest.view == 0)
    for (const Seat seat : all.nodes) voters.push_back(all.names[seat]);
  for (const std::uint32_t seat : all.newest.voters) voters.push_back(all.newest.names[seat]);
  return voters;
}

// A voter that is not asked and may know a later view.
std::optional<StateRefusal> may_know_more(const Offered& all) {
  for (const std::string& node : newest_voters(all)) {
    if (std::ranges::any_of(all.nodes, [&](Seat seat) { return all.names[seat] == node; })) continue;
    const bool listed = all.names.listed(node).has_value();
    return StateRefusal{
        node,
        {ErrorKind::kUnreachable, node + " was a member of the last view and " +
                                      (listed ? "is not reachable; start its tgd"
                                              : "no peer line names it; put the line back and start its tgd") +
                                      ", or tgctl resume " + all.run_id + (listed ? " --without " + node : "")}};
  }
  return std::nullopt;
}

}  // namespace

ChosenState choose_state(const std::string& run_id, const schema::Resume& asked, const std::vector<Seat>& nodes,
                         const Per<Seat, Offer>& offers, const schema::NodeList& names, const ResumePolicy& how) {
  const Offered all{run_id, nodes, offers, names};
  if (how.unasked)
    if (std::optional<StateRefusal> more = may_know_more(all)) return *std::move(more);
  const std::vector<StateId> common = shared(offers, nodes);
  const auto knows = [&](Seat seat) { return !offers[seat].states.empty(); };
  const bool all_know = std::ranges::all_of(nodes, knows);
  std::vector<Seat> members = asked.from_step ? nodes : holders(offers, how.joins);
  std::vector<StateId> places = shared(offers, members);
  // Otherwise the common state is as good: the same view, or the same bits. A resume writes its start state under a
  // name of its own; if it is killed at once, some have that file and others do not.
  const bool went_on =
      !places.empty() &&
      (common.empty() || (branch_of(places[0]) != branch_of(common[0]) && !places[0].same_bits(common[0])));
  const std::vector<std::string> voters = newest_voters(all);
  const auto is_needed = [&](Seat seat) { return !how.joins || std::ranges::count(voters, names[seat]) > 0; };
  if (how.unasked && !std::ranges::all_of(nodes, [&](Seat seat) { return !is_needed(seat) || knows(seat); })) {
    StateRefusal none = nothing(all, asked, common);
    if (went_on && how.joins)
      none.error.message += "; tgctl resume " + run_id + " resumes with the nodes that have it, and the others join";
    return none;
  }
  if (!how.joins && went_on && !common.empty() && common[0].step == 0) return only_the_beginning(all);
  if (!how.joins || (all_know && !went_on)) {
    members = nodes;
    places = common;
  }
  const auto chosen = std::ranges::find_if(
      places, [&](const StateId& one) { return !asked.from_step || one.step == *asked.from_step; });
  if (chosen == places.end()) return nothing(all, asked, places);
  for (const Seat seat : members) {
    for (const StateId& one : offers[seat].states) {
      if (!same_place(one, *chosen) || one.digest == chosen->digest) continue;
      std::vector<StateId> others;
      std::ranges::copy_if(places, std::back_inserter(others),
                           [&](const StateId& other) { return other.step != chosen->step; });
      return StateRefusal{
          names[seat],
          {ErrorKind::kCorrupt,
           "run " + run_id + " cannot resume: states of step " + std::to_string(chosen->step) +
               " differ: " + names[members.front()] + " has " + hex_digest(chosen->digest) + ", " + names[seat] +
               " has " + hex_digest(one.digest) +
               (others.empty() ? "; start a new run, or delete the wrong file in the run's folder on its node"
                               : "; take an earlier one with --from: " + steps_of(others))}};
    }
  }
  return ResumePoint{*chosen, std::move(members), all.newest.names};
}

}  // namespace tg::daemon
