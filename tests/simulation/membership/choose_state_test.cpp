// The newest state that all nodes have, or all that continued without the others, against a plain search.
#include "daemon/membership/choose_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/seeds.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

using schema::Offer;
using schema::StateId;

Per<Seat, std::string> names(std::size_t count) {
  Per<Seat, std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("node-" + std::to_string(i));
  return all;
}

std::vector<Seat> all(std::size_t count) {
  std::vector<Seat> seats;
  for (std::size_t i = 0; i < count; ++i) seats.emplace_back(i);
  return seats;
}

ChosenState chosen(const Per<Seat, Offer>& offers, std::optional<std::uint64_t> from_step = std::nullopt) {
  return choose_state("run-1", {2, from_step}, all(offers.size()), offers, names(offers.size()));
}

StateId state_of(const ChosenState& chosen) {
  const auto* found = std::get_if<ResumePoint>(&chosen);
  EXPECT_NE(found, nullptr);
  return found == nullptr ? StateId() : found->state;
}
std::size_t members_of(const ChosenState& chosen) { return std::get<ResumePoint>(chosen).members.size(); }

std::string refusal(const ChosenState& chosen) {
  const auto* none = std::get_if<StateRefusal>(&chosen);
  return none == nullptr ? "" : none->error.message;
}

TEST(ChooseState, ALaterBeginningIsNewerWhateverItsStep) {
  const Offer offer{{{2, 1, 300, 7}, {1, 1, 900, 8}}, ""};
  EXPECT_EQ(state_of(chosen({offer, offer})), (StateId{2, 1, 300, 7}));
  EXPECT_EQ(state_of(chosen({offer, offer}, 900)), (StateId{1, 1, 900, 8}));
  const Offer both{{{2, 1, 900, 7}, {1, 1, 900, 8}}, ""};
  EXPECT_EQ(state_of(chosen({both, both}, 900)), (StateId{2, 1, 900, 7})) << "of one step the newest";
}

TEST(ChooseState, AnyOrderAndDoublesAreRead) {
  const Offer one{{{1, 1, 300, 3}, {1, 1, 900, 9}, {1, 1, 300, 3}}, ""}, other{{{1, 1, 900, 9}, {1, 1, 300, 3}}, ""};
  EXPECT_EQ(state_of(chosen({one, other})), (StateId{1, 1, 900, 9}));
  const Offer twice{{{1, 1, 900, 9}, {1, 1, 900, 10}}, ""};
  EXPECT_NE(refusal(chosen({other, twice})), "") << "one that does not agree with itself";
  EXPECT_NE(refusal(chosen({twice, twice})), "");
}

TEST(ChooseState, TheNewestViewResumesAndTheOthersJoin) {
  const StateId beginning{1, 1, 0, 1};
  const Offer left{{{1, 1, 30, 3}, beginning}, ""};
  for (const StateId& later : {StateId{1, 2, 90, 9}, StateId{2, 1, 40, 9}}) {
    const Offer went_on{{later, {1, 1, 30, 3}, beginning}, ""};
    const ChosenState some = chosen({went_on, left, went_on});
    EXPECT_EQ(state_of(some), later);
    EXPECT_EQ(std::get<ResumePoint>(some).members, (std::vector<Seat>{Seat(0), Seat(2)}));
    EXPECT_EQ(state_of(chosen({went_on, left}, 0)), beginning) << "an explicit step is chosen";
    EXPECT_EQ(members_of(chosen({went_on, left}, 0)), 2u);
  }
  const Offer first{{{1, 1, 30, 3}, beginning}, ""}, none_yet{{beginning}, ""};
  EXPECT_EQ(state_of(chosen({first, none_yet})), beginning) << "before the second node's first checkpoint: of one view";
  EXPECT_EQ(members_of(chosen({first, none_yet})), 2u);
  // The members of the newest view share no state of it: nothing is given up, and the others join.
  const Offer one{{{1, 2, 90, 9}, {1, 1, 30, 3}, beginning}, ""}, other{{{1, 2, 80, 8}, {1, 1, 30, 3}, beginning}, ""};
  const Offer came_in_late{{{1, 2, 80, 8}, beginning}, ""};
  for (const Offer& second : {other, came_in_late}) {
    EXPECT_EQ(state_of(chosen({one, second, left})), (StateId{1, 2, 90, 9}));
    EXPECT_EQ(members_of(chosen({one, second, left})), 1u);
  }
}

TEST(ChooseState, WithoutJoinsAllNodesResumeOrNone) {
  const StateId beginning{1, 1, 0, 1};
  const auto alone = [](const Per<Seat, Offer>& offers) {
    return choose_state("run-1", {}, all(offers.size()), offers, names(offers.size()), {.joins = false});
  };
  const Offer left{{{1, 1, 30, 3}, beginning}, ""}, went_on{{{1, 2, 90, 9}, beginning}, ""};
  const ChosenState none = alone({went_on, left, went_on});
  ASSERT_EQ(std::get<StateRefusal>(none).node, "node-1");
  EXPECT_NE(refusal(none).find("node-1 has step 30, 0; "), std::string::npos) << refusal(none);
  EXPECT_NE(refusal(none).find("begin again with --from 0"), std::string::npos) << refusal(none);
  const Offer last_shared{{{1, 2, 90, 9}, {1, 1, 30, 3}, beginning}, ""};
  EXPECT_EQ(state_of(alone({last_shared, left})), (StateId{1, 1, 30, 3}));
  EXPECT_NE(refusal(alone({left, Offer{}})).find("not every node has"), std::string::npos);
}

TEST(ChooseState, AResumedStateWrittenByOneNodeIsNoLaterView) {
  for (const std::uint64_t step : {0, 30})
    for (const bool joins : {false, true}) {
      const StateId from{1, 1, step, 3};
      const Offer written{{{2, 1, step, 3}, from, {1, 1, 0, 3}}, ""}, not_yet{{from, {1, 1, 0, 3}}, ""};
      const ChosenState all_go =
          choose_state("run-1", {}, all(3), {written, not_yet, written}, names(3), {.joins = joins});
      EXPECT_EQ(state_of(all_go), from) << refusal(all_go);
      EXPECT_EQ(members_of(all_go), 3u);
    }
}

TEST(ChooseState, ANodeWithoutTheRunJoinsItIfAPersonResumes) {
  const Offer knows{{{1, 1, 30, 3}, {1, 1, 0, 1}}, ""}, wiped{{}, "node-1 has no run run-1: it was emptied"};
  const ChosenState some = chosen({knows, wiped, knows});
  EXPECT_EQ(state_of(some), (StateId{1, 1, 30, 3}));
  EXPECT_EQ(std::get<ResumePoint>(some).members, (std::vector<Seat>{Seat(0), Seat(2)}));
  const ChosenState unasked = choose_state("run-1", {}, all(3), {knows, wiped, knows}, names(3), {.unasked = true});
  EXPECT_EQ(std::get<StateRefusal>(unasked).node, "node-1");
  EXPECT_NE(refusal(unasked).find("it was emptied"), std::string::npos);
  EXPECT_NE(refusal(unasked).find("tgctl resume run-1 resumes with the nodes that have it"), std::string::npos);
  EXPECT_NE(refusal(chosen({wiped, wiped})), "");
}

// The first two of three nodes were the members of view 2.
TEST(ChooseState, AnAutomaticResumeWaitsForTheMembersOfTheNewestView) {
  const std::vector<std::string> kThree{"node-0", "node-1", "node-2"};
  const auto by_itself = [](const std::vector<Seat>& nodes, const Per<Seat, Offer>& offers) {
    return choose_state("run-1", {}, nodes, offers, names(3), {.unasked = true});
  };
  const Offer went_on{{{1, 2, 90, 9}, {1, 1, 30, 3}}, "", 1, 2, {0, 1}, kThree},
      left{{{1, 1, 30, 3}}, "", 1, 1, {0, 1, 2}, kThree};
  const Offer wiped{{}, "it was emptied"};
  const ChosenState two = by_itself({Seat(0), Seat(1)}, {went_on, went_on, {}});
  EXPECT_EQ(state_of(two), (StateId{1, 2, 90, 9}));
  EXPECT_EQ(members_of(two), 2u);
  EXPECT_EQ(members_of(by_itself(all(3), {went_on, went_on, left})), 2u);
  EXPECT_EQ(members_of(by_itself(all(3), {went_on, went_on, wiped})), 2u) << "it was no member in the end";
  EXPECT_EQ(refusal(by_itself({Seat(0), Seat(2)}, {went_on, {}, left})),
            "node-1 was a member of the last view and is not reachable; start its tgd, or tgctl resume run-1 --without "
            "node-1");
  EXPECT_NE(refusal(by_itself(all(3), {went_on, wiped, left})).find("node-1 has none (it was emptied)"),
            std::string::npos);
  // An evicted node may know of view 2, too: node-2 was a member in view 1 only.
  const Offer told{{{1, 1, 30, 3}}, "", 1, 2, {0, 1}, kThree};
  EXPECT_EQ(refusal(by_itself({Seat(0), Seat(2)}, {left, {}, told})),
            "node-1 was a member of the last view and is not reachable; start its tgd, or tgctl resume run-1 --without "
            "node-1");
  EXPECT_EQ(state_of(choose_state("run-1", {}, {Seat(2)}, {{}, {}, left}, names(3))), (StateId{1, 1, 30, 3}))
      << "a person may";
  const Offer taken_out{{{1, 2, 90, 9}}, "", 1, 2, {0, 3}, {"node-0", "node-1", "node-2", "old"}};
  EXPECT_EQ(refusal(by_itself({Seat(0), Seat(1)}, {taken_out, left, {}})),
            "old was a member of the last view and no peer line names it; put the line back and start its tgd, or "
            "tgctl resume run-1");
}

TEST(ChooseState, AMessageOfManyNodesIsBounded) {
  Per<Seat, Offer> offers(schema::kMaxMembers);
  for (Offer& offer : offers)
    for (std::uint64_t i = 0; i < schema::kMaxStates; ++i) offer.states.push_back({1, 1, 1'000'000'000 + i, i});
  offers.back().states.clear();
  const ChosenState none =
      choose_state("run-1", {}, all(offers.size()), offers, names(offers.size()), {.unasked = true});
  EXPECT_EQ(std::get<StateRefusal>(none).node, "node-126");
  EXPECT_LT(refusal(none).size(), schema::kMaxReasonBytes);
  EXPECT_NE(refusal(none).find("; and so on for 119 more nodes; "), std::string::npos) << refusal(none);
}

TEST(ChooseState, LikeAPlainSearch) {
  std::size_t found = 0, differed = 0, nothing = 0, fewer = 0;
  for (const std::uint64_t seed : seeds(2'000)) {
    TG_SEED(seed);
    simulation::Random random(seed);
    Per<Seat, Offer> offers(random.between(1, 5));
    for (Offer& offer : offers)
      for (std::uint64_t i = random.between(0, 4); i > 0; --i) {
        StateId one{static_cast<std::uint32_t>(random.between(1, 2)), static_cast<std::uint32_t>(random.between(1, 2)),
                    random.between(1, 3), 0};
        one.digest =
            100 * one.lineage + 10 * one.view + (random.one_in(20) ? 6u : 5u);  // no two places have equal bits
        offer.states.push_back(one);
      }
    std::optional<std::uint64_t> from_step;
    if (random.one_in(2)) from_step = random.between(1, 3);
    // Place -> whose, and with which digests.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>,
             std::pair<std::set<Seat>, std::set<std::uint64_t>>>
        all;
    for (const Seat seat : offers.places())
      for (const StateId& one : offers[seat].states) {
        auto& [seats, digests] = all[{one.lineage, one.view, one.step}];
        seats.insert(seat);
        digests.insert(one.digest);
      }
    const ChosenState answer = chosen(offers, from_step);
    // Whose states count: all nodes', or, where nothing was asked for, those of the newest view.
    std::set<Seat> everybody, newest;
    bool all_know = true;
    for (const Seat seat : offers.places()) {
      everybody.insert(seat);
      all_know = all_know && !offers[seat].states.empty();
    }
    for (const auto& [place, whose] : all)
      if (std::get<0>(place) == std::get<0>(all.rbegin()->first) &&
          std::get<1>(place) == std::get<1>(all.rbegin()->first))
        newest.insert(whose.first.begin(), whose.first.end());
    const auto search = [&](const std::set<Seat>& seats) {
      for (auto at = all.rbegin(); at != all.rend(); ++at)
        if (!seats.empty() && std::ranges::includes(at->second.first, seats) &&
            (!from_step || std::get<2>(at->first) == *from_step))
          return at;
      return all.rend();
    };
    auto expected = from_step ? search(everybody) : search(newest);
    std::set<Seat> members = from_step ? everybody : newest;
    const auto is_of_the_newest_view = [&](const auto& place) {
      return std::get<0>(place) == std::get<0>(all.rbegin()->first) &&
             std::get<1>(place) == std::get<1>(all.rbegin()->first);
    };
    if (!from_step && !all.empty() && (expected == all.rend() || !is_of_the_newest_view(expected->first))) {
      expected = all.rbegin();
      members = expected->second.first;
    }
    if (const auto common = search(everybody);
        !from_step && all_know &&
        (expected == all.rend() ||
         (common != all.rend() && std::get<0>(common->first) == std::get<0>(expected->first) &&
          std::get<1>(common->first) == std::get<1>(expected->first)))) {
      expected = common;
      members = everybody;
    }
    if (expected == all.rend()) {
      EXPECT_NE(refusal(answer).find("not every node has"), std::string::npos) << refusal(answer);
      ++nothing;
      continue;
    }
    std::set<std::uint64_t> digests;
    for (const Seat seat : members)
      for (const StateId& one : offers[seat].states)
        if (std::tuple(one.lineage, one.view, one.step) == expected->first) digests.insert(one.digest);
    if (digests.size() > 1) {
      EXPECT_NE(refusal(answer).find("differ"), std::string::npos) << refusal(answer);
      ++differed;
    } else {
      ASSERT_EQ(refusal(answer), "");
      const auto& [state, seats, named] = std::get<ResumePoint>(answer);
      EXPECT_EQ(std::tuple(state.lineage, state.view, state.step), expected->first);
      EXPECT_EQ(state.digest, *digests.begin());
      EXPECT_TRUE(named.empty()) << "no node knows a view";
      EXPECT_EQ(std::set<Seat>(seats.begin(), seats.end()), members);
      ++found;
      fewer += members.size() < everybody.size();
    }
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%zu found, of which %zu with fewer members; %zu differed, %zu had nothing in common\n", found, fewer,
              differed, nothing);
  EXPECT_GT(fewer, 0u);
  EXPECT_GT(found, 0u);
  EXPECT_GT(differed, 0u);
  EXPECT_GT(nothing, 0u);
}

}  // namespace
}  // namespace tg::daemon
