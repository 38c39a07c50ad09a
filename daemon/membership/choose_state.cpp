#include "daemon/membership/choose_state.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/base/hex.h"

namespace tg::daemon {
namespace {

using schema::Offer;
using schema::StateId;

constexpr std::size_t kMostNodesNamed = 8, kMostStepsNamed = 8;

auto place_of(const StateId& state) { return std::tie(state.lineage, state.view, state.step); }

bool same_place(const StateId& a, const StateId& b) { return place_of(a) == place_of(b); }

const StateId* find(const Offer& offer, const StateId& place) {
  const auto found = std::ranges::find_if(offer.states, [&](const StateId& one) { return same_place(one, place); });
  return found == offer.states.end() ? nullptr : &*found;
}

// Places that all have a state of, newest first.
std::vector<StateId> shared(const Per<Seat, Offer>& offers) {
  std::vector<StateId> places;
  for (const StateId& one : offers.front().states)
    if (std::ranges::all_of(offers, [&](const Offer& offer) { return find(offer, one) != nullptr; }))
      places.push_back(one);
  std::ranges::sort(places, std::greater<>{});
  return places;
}

// The beginning, which needs no file, though some went on in a later view or lineage: whoever is not there lacks what
// the others have since, and nobody gives up so much without being asked.
bool gives_up_all(const StateId& chosen, const Per<Seat, Offer>& offers) {
  const auto is_later = [&](const StateId& one) {
    return one.step > 0 && (one.lineage > 1 || one.view > 1) && place_of(one) > place_of(chosen);
  };
  return chosen.step == 0 &&
         std::ranges::any_of(offers, [&](const Offer& offer) { return std::ranges::any_of(offer.states, is_later); });
}

// "900, 600", the largest first
std::string steps_of(const std::vector<StateId>& states) {
  std::set<std::uint64_t, std::greater<>> steps;
  for (const StateId& state : states) steps.insert(state.step);
  std::string text;
  std::size_t named = 0;
  for (const std::uint64_t step : steps) {
    if (named++ == kMostStepsNamed) return text + " and older ones";
    text += (text.empty() ? "" : ", ") + std::to_string(step);
  }
  return text;
}

// "node-a has 900, 600; node-b has none (why)"
std::string holdings(const Per<Seat, Offer>& offers, const Per<Seat, std::string>& names) {
  std::string text;
  for (const Seat seat : offers.places()) {
    if (seat.index() == kMostNodesNamed)
      return text + "; and so on for " + std::to_string(offers.size() - kMostNodesNamed) + " more nodes";
    const Offer& offer = offers[seat];
    text += (text.empty() ? "" : "; ") + names[seat] + " has " +
            (offer.states.empty() ? "none" : "step " + steps_of(offer.states)) +
            (offer.problem.empty() ? "" : " (" + offer.problem + ")");
  }
  return text;
}

NoState nothing(const std::string& run_id, const schema::Resume& asked, const std::vector<StateId>& places,
                const Per<Seat, Offer>& offers, const Per<Seat, std::string>& names) {
  // Who has none is what has to be mended.
  const auto bare = std::ranges::find_if(offers, [](const Offer& offer) { return offer.states.empty(); });
  const std::string node = bare == offers.end() ? "" : names[Seat(static_cast<std::size_t>(bare - offers.begin()))];
  const std::string what = asked.from_step ? "the state of step " + std::to_string(*asked.from_step) : "a state";
  const std::string way = !places.empty() ? "all have step " + steps_of(places) + ": choose with --from"
                          : node.empty()
                              ? "begin it anew, or copy a state's file from one node's folder of this run to the others"
                              : "begin it anew, or copy a state's file from another node's folder of this run there";
  return {node,
          {ErrorKind::kNotFound, "run " + run_id + " cannot go on: not every node has " + what + ": " +
                                     holdings(offers, names) + "; " + way}};
}

NoState only_the_beginning(const std::string& run_id, const Per<Seat, Offer>& offers,
                           const Per<Seat, std::string>& names) {
  StateId newest;
  for (const Offer& offer : offers)
    for (const StateId& one : offer.states) newest = std::max(newest, one);
  const auto lacks = std::ranges::find_if(offers, [&](const Offer& offer) { return find(offer, newest) == nullptr; });
  return {names[Seat(static_cast<std::size_t>(lacks - offers.begin()))],
          {ErrorKind::kNotFound,
           "run " + run_id + " cannot go on: some nodes went on without the others, and all have its beginning only: " +
               holdings(offers, names) +
               "; copy the newest state's file from one node's folder of this run to the others, or begin again with "
               "--from 0"}};
}

}  // namespace

ChosenState choose_state(const std::string& run_id, const schema::Resume& asked, const Per<Seat, Offer>& offers,
                         const Per<Seat, std::string>& names) {
  const std::vector<StateId> places = shared(offers);
  const auto chosen = std::ranges::find_if(
      places, [&](const StateId& one) { return !asked.from_step || one.step == *asked.from_step; });
  if (chosen == places.end()) return nothing(run_id, asked, places, offers, names);
  if (!asked.from_step && gives_up_all(*chosen, offers)) return only_the_beginning(run_id, offers, names);
  for (const Seat seat : offers.places()) {
    for (const StateId& one : offers[seat].states) {
      if (!same_place(one, *chosen) || one.digest == chosen->digest) continue;
      std::vector<StateId> others;
      std::ranges::copy_if(places, std::back_inserter(others),
                           [&](const StateId& other) { return other.step != chosen->step; });
      return NoState{names[seat],
                     {ErrorKind::kCorrupt,
                      "run " + run_id + " cannot go on: states of step " + std::to_string(chosen->step) +
                          " differ: " + names[Seat(0)] + " has " + hex_digest(chosen->digest) + ", " + names[seat] +
                          " has " + hex_digest(one.digest) +
                          (others.empty() ? "; begin it anew, or delete the wrong file in the run's folder on its node"
                                          : "; take an earlier one with --from: " + steps_of(others))}};
    }
  }
  return *chosen;
}

}  // namespace tg::daemon
