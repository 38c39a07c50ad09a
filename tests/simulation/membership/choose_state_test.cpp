// The newest state that all have, against a plain search.
#include "daemon/membership/choose_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

ChosenState chosen(const Per<Seat, Offer>& offers, std::optional<std::uint64_t> from_step = std::nullopt) {
  return choose_state("run-1", {2, from_step}, offers, names(offers.size()));
}

std::string refusal(const ChosenState& chosen) {
  const auto* none = std::get_if<NoState>(&chosen);
  return none == nullptr ? "" : none->error.message;
}

TEST(ChooseState, ALaterBeginningIsNewerWhateverItsStep) {
  const Offer offer{{{2, 1, 300, 7}, {1, 1, 900, 8}}, ""};
  EXPECT_EQ(std::get<StateId>(chosen({offer, offer})), (StateId{2, 1, 300, 7}));
  EXPECT_EQ(std::get<StateId>(chosen({offer, offer}, 900)), (StateId{1, 1, 900, 8}));
  const Offer both{{{2, 1, 900, 7}, {1, 1, 900, 8}}, ""};
  EXPECT_EQ(std::get<StateId>(chosen({both, both}, 900)), (StateId{2, 1, 900, 7})) << "of one step the newest";
}

TEST(ChooseState, AnyOrderAndDoublesAreRead) {
  const Offer one{{{1, 1, 300, 3}, {1, 1, 900, 9}, {1, 1, 300, 3}}, ""}, other{{{1, 1, 900, 9}, {1, 1, 300, 3}}, ""};
  EXPECT_EQ(std::get<StateId>(chosen({one, other})), (StateId{1, 1, 900, 9}));
  const Offer twice{{{1, 1, 900, 9}, {1, 1, 900, 10}}, ""};
  EXPECT_NE(refusal(chosen({other, twice})), "") << "one that does not agree with itself";
  EXPECT_NE(refusal(chosen({twice, twice})), "");
}

TEST(ChooseState, TheBeginningIsNotTakenUnaskedWhereSomeWentOnWithoutTheOthers) {
  const StateId beginning{1, 1, 0, 1};
  const Offer left{{{1, 1, 30, 3}, beginning}, ""};
  for (const StateId& later : {StateId{1, 2, 90, 9}, StateId{2, 1, 40, 9}}) {
    const Offer went_on{{later, beginning}, ""};
    const ChosenState none = chosen({went_on, left, went_on});
    ASSERT_EQ(std::get<NoState>(none).node, "node-1");
    EXPECT_NE(refusal(none).find("node-1 has step 30, 0; "), std::string::npos) << refusal(none);
    EXPECT_NE(refusal(none).find("begin again with --from 0"), std::string::npos) << refusal(none);
    EXPECT_EQ(std::get<StateId>(chosen({went_on, left}, 0)), beginning) << "who asks gets it";
  }
  const Offer first{{{1, 1, 30, 3}, beginning}, ""}, none_yet{{beginning}, ""};
  EXPECT_EQ(std::get<StateId>(chosen({first, none_yet})), beginning) << "before the first checkpoint";
  const Offer last_shared{{{1, 2, 90, 9}, {1, 1, 30, 3}, beginning}, ""};
  EXPECT_EQ(std::get<StateId>(chosen({last_shared, left})), (StateId{1, 1, 30, 3}));
}

TEST(ChooseState, AMessageOfManyNodesIsBounded) {
  Per<Seat, Offer> offers(schema::kMostMembers);
  for (Offer& offer : offers)
    for (std::uint64_t i = 0; i < schema::kMostStates; ++i) offer.states.push_back({1, 1, 1'000'000'000 + i, i});
  offers.back().states.clear();
  const ChosenState none = chosen(offers);
  EXPECT_EQ(std::get<NoState>(none).node, "node-126");
  EXPECT_LT(refusal(none).size(), schema::kMostReasonBytes);
  EXPECT_NE(refusal(none).find("; and so on for 119 more nodes; "), std::string::npos) << refusal(none);
}

TEST(ChooseState, LikeAPlainSearch) {
  std::size_t found = 0, differed = 0, nothing = 0;
  for (const std::uint64_t seed : seeds(2'000)) {
    TG_SEED(seed);
    simulation::Random random(seed);
    Per<Seat, Offer> offers(random.between(1, 5));
    for (Offer& offer : offers)
      for (std::uint64_t i = random.between(0, 4); i > 0; --i)
        offer.states.push_back({static_cast<std::uint32_t>(random.between(1, 2)),
                                static_cast<std::uint32_t>(random.between(1, 2)), random.between(1, 3),
                                random.one_in(20) ? 6u : 5u});
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
    bool searched = true;
    for (auto at = all.rbegin(); at != all.rend() && searched; ++at) {
      const auto& [seats, digests] = at->second;
      if (seats.size() != offers.size() || (from_step && std::get<2>(at->first) != *from_step)) continue;
      searched = false;
      if (digests.size() > 1) {
        EXPECT_NE(refusal(answer).find("differ"), std::string::npos) << refusal(answer);
        ++differed;
      } else {
        ASSERT_EQ(refusal(answer), "");
        const StateId& state = std::get<StateId>(answer);
        EXPECT_EQ(std::tuple(state.lineage, state.view, state.step), at->first);
        EXPECT_EQ(state.digest, *digests.begin());
        ++found;
      }
    }
    if (searched) {
      EXPECT_NE(refusal(answer).find("not every node has"), std::string::npos) << refusal(answer);
      ++nothing;
    }
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%zu found, %zu differed, %zu had nothing in common\n", found, differed, nothing);
  EXPECT_GT(found, 0u);
  EXPECT_GT(differed, 0u);
  EXPECT_GT(nothing, 0u);
}

}  // namespace
}  // namespace tg::daemon
