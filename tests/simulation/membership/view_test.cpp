// A view: rank, seniority, which voters may decide the next one, and what a coordinator concludes from promises.
#include "daemon/membership/view.h"

#include "daemon/membership/choose_view.h"
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

schema::ViewMember member(std::uint32_t seat, std::uint32_t since) { return {.seat = seat, .since = since}; }

TEST(View, SeniorityIsByTheTimeAsAMemberThenBySeat) {
  const View view({.number = 5, .members = {member(0, 4), member(2, 1), member(3, 4), member(5, 1)}});
  EXPECT_EQ(view.by_seniority(), (std::vector{Seat(2), Seat(5), Seat(0), Seat(3)}));
  EXPECT_EQ(view.rank(Seat(3)), Rank(2));
  EXPECT_EQ(view.rank(Seat(1)), std::nullopt);
  EXPECT_EQ(view.seat(Rank(3)), Seat(5));
}

TEST(View, ARunNumbersItsNodesOtherwiseThanThisOneDoes) {
  const View view({.number = 2, .members = {member(0, 2), member(2, 1)}, .names = {"node-c", "node-x", "node-a"}},
                  {"node-a", "node-b", "node-c"});
  EXPECT_EQ(view.seats(), (std::vector{kC, kA})) << "as on every node";
  EXPECT_EQ(view.rank(kA), Rank(1));
  EXPECT_EQ(view.by_seniority(), (std::vector{kA, kC}));
  EXPECT_EQ(view.number_of(kA), 2u);
  EXPECT_EQ(view.member_of(0), kC);
  EXPECT_EQ(view.member_of(1), std::nullopt) << "a former member";
}

TEST(View, AQuorumIsMoreThanHalfOrHalfWithTheMostSenior) {
  const View four({.number = 5, .members = {member(0, 4), member(1, 1), member(2, 1), member(3, 1)}});
  EXPECT_TRUE(is_quorum(four, {kA, kC, kD}));
  EXPECT_TRUE(is_quorum(four, {kB, kC})) << "node-b is the most senior";
  EXPECT_FALSE(is_quorum(four, {kA, kC}));
  EXPECT_FALSE(is_quorum(four, {kB}));
  EXPECT_TRUE(is_quorum(View::of_all(1), {kA}));
  EXPECT_TRUE(is_quorum(View::of_all(2), {kA}));
  EXPECT_FALSE(is_quorum(View::of_all(2), {kB}));
  EXPECT_FALSE(is_quorum(View::of_all(3), {kA}));
}

TEST(View, AVoterIsASeatWithItsDirectory) {
  const View view(first_view(3));
  EXPECT_TRUE(view.has_voter(kB, directory_of(kB)));
  EXPECT_FALSE(view.has_voter(kB, directory_of(kA)));
  EXPECT_FALSE(view.has_voter(kD, directory_of(kD)));
}

View named_view(std::size_t members) {
  schema::NextView first = first_view(members);
  first.names = {"node-a", "node-b", "node-c", "node-d"};
  return View(first);
}
// What is chosen, as its members' letters and its start.
std::string chosen(const Promises& promises, std::size_t members = 4) {
  const auto next = choose_view(named_view(members), promises, "why");
  if (!next) return "nothing";
  std::string text;
  for (const schema::ViewMember& one : next->members) text += static_cast<char>('a' + one.seat);
  EXPECT_EQ(next->number, 2u);
  return text + " from " + std::to_string(next->start) + (next->waits ? ", waiting" : "");
}
Promises all_promise() {
  Promises promises;
  for (const Seat seat : {kA, kB, kC, kD}) promises.emplace_back(seat, promise(seat, ballot(1, kA)));
  return promises;
}
void cut(Promises& promises, Seat from, Seat to) {
  std::erase(promises[to.index()].second.reachable, std::string("node-") + static_cast<char>('a' + from.index()));
}

TEST(ChooseView, AllEligibleMembersStartAtTheLeastStep) {
  Promises promises = all_promise();
  EXPECT_EQ(chosen(promises), "abcd from 12");
  promises[1].second.vote = 5;
  EXPECT_EQ(choose_view(named_view(4), promises, "why")->members[1].vote, 5u);
  promises[2].second.step = 11;
  EXPECT_EQ(chosen(promises), "abcd from 11");
  promises[2].second.unfit = "node-c is stuck";
  EXPECT_EQ(chosen(promises), "abd from 11") << "its state counts";
  promises[1].second.leaving = true;
  EXPECT_EQ(chosen(promises), "ad from 11, waiting");
  promises[0].second.has_state = false;
  promises[0].second.step = 0;
  EXPECT_EQ(chosen(promises), "d from 11, waiting");
  promises.pop_back();
  EXPECT_EQ(chosen(promises), "nothing");
}

TEST(ChooseView, TheMemberWithFewestLinksIsDropped) {
  Promises promises = all_promise();
  cut(promises, kB, kC);
  EXPECT_EQ(chosen(promises), "abd from 12") << "one way is enough to part them";
  cut(promises, kB, kD);
  EXPECT_EQ(chosen(promises), "acd from 12");
  promises = all_promise();
  cut(promises, kA, kB);
  cut(promises, kC, kD);
  EXPECT_EQ(chosen(promises), "ac from 12");
}

TEST(ChooseView, AnAcceptedValueBinds) {
  Promises promises = all_promise();
  promises[1].second.accepted_in = ballot(1, kB);
  promises[1].second.accepted = next_view({kB, kC}, 9);
  EXPECT_EQ(chosen(promises), "bc from 9");
  promises[0].second.accepted_in = ballot(2, kA);
  promises[0].second.accepted = next_view({kA, kB}, 8);
  EXPECT_EQ(chosen(promises), "ab from 8") << "of the highest ballot";
}

TEST(ChooseView, TheMessageOfALostQuorum) {
  const Peers peers({"node-a", "node-b", "node-c", "node-d", "node-e"}, kA);
  const auto words = [&](std::size_t members, const std::vector<Seat>& away) {
    std::vector<Seat> reachable = View::of_all(members).seats();
    std::erase_if(reachable, [&](Seat seat) { return std::ranges::find(away, seat) != away.end(); });
    return quorum_lost_text(View::of_all(members), reachable, away, peers);
  };
  EXPECT_EQ(words(4, {kA, kC}), "quorum lost: 2 of 4 voters reachable; resumes when node-a or node-c returns");
  EXPECT_EQ(words(2, {kA}), "quorum lost: 1 of 2 voters reachable; resumes when node-a returns");
  EXPECT_EQ(words(4, {kA, kB, kC}), "quorum lost: 1 of 4 voters reachable; resumes when node-a returns");
  EXPECT_EQ(words(4, {kB, kC, kD}),
            "quorum lost: 1 of 4 voters reachable; resumes when node-b, node-c or node-d returns");
  EXPECT_EQ(words(5, {kA, kB, kC, kD}),
            "quorum lost: 1 of 5 voters reachable; resumes when 2 of node-a, node-b, node-c, node-d return");
  const View six = View::of_all(6);
  EXPECT_EQ(quorum_lost_text(six, {Seat(4)}, {kA, kB}, peers),
            "quorum lost: 1 of 6 voters reachable; resumes when 2 of node-a, node-b return")
      << "the votes of the others are lost";
  Peers shrunk = peers;
  shrunk.add_absent("node-f");
  EXPECT_EQ(quorum_lost_text(six, {kA, kB}, {Seat(5)}, shrunk),
            "quorum lost: 2 of 6 voters reachable; resumes when node-f returns; no peer line of node-a names node-f: "
            "put it back");
}

}  // namespace
}  // namespace tg::daemon
