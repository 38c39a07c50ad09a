#include "daemon/membership/lineage.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

// Lineage 2 began at step 10 of lineage 1; two began there as the third: one at its step 30, one before it had made
// any.
const Lineage kFirst{1, 71, {}}, kSecond{2, 72, {{1, 71, 10}}}, kThird{3, 73, {{2, 72, 30}, {1, 71, 10}}},
    kOther{3, 74, {{2, 72, 10}, {1, 71, 10}}};

TEST(Lineage, TheHigherOneContradictsWhatIsNotOnItsLine) {
  EXPECT_EQ(compare(kFirst, {kFirst, 500}), Heard::kSame);
  EXPECT_EQ(compare(kSecond, {kFirst, 10}), Heard::kHigher) << "the state that it began with";
  EXPECT_EQ(compare(kSecond, {kFirst, 3}), Heard::kHigher) << "late";
  EXPECT_EQ(compare(kSecond, {kFirst, 11}), Heard::kContradicts);
  EXPECT_EQ(compare(kFirst, {kSecond, 10}), Heard::kLower);
  EXPECT_EQ(compare(kThird, {kSecond, 30}), Heard::kHigher);
  EXPECT_EQ(compare(kThird, {kSecond, 31}), Heard::kContradicts);
  EXPECT_EQ(compare(kThird, {kFirst, 10}), Heard::kHigher) << "it missed a lineage";
  EXPECT_EQ(compare(kThird, {kFirst, 11}), Heard::kContradicts) << "although there are more steps";
}

TEST(Lineage, OfTwoOrdersTheHigherKeyWins) {
  EXPECT_EQ(compare(kThird, {kOther, 40}), Heard::kLower);
  EXPECT_EQ(compare(kOther, {kThird, 40}), Heard::kContradicts);
  EXPECT_EQ(compare(kOther, {kThird, 30}), Heard::kContradicts) << "it began later on the same line";
  const Lineage both{3, 75, {{2, 72, 30}, {1, 71, 10}}};
  EXPECT_EQ(compare(both, {kThird, 30}), Heard::kHigher) << "it has made no step";
  EXPECT_EQ(compare(both, {kOther, 10}), Heard::kHigher) << "nor has this one, whose state is older";
  EXPECT_EQ(compare(both, {kOther, 11}), Heard::kContradicts);
  EXPECT_EQ(compare({2, 76, {{1, 70, 20}}}, {{1, 71, {}}, 5}), Heard::kContradicts) << "another first lineage";
  EXPECT_EQ(compare({2, 76, {{1, 70, 20}}}, {{1, 71, {}}, 0}), Heard::kHigher) << "the run's beginning";
}

TEST(Lineage, TheTextNamesBoth) {
  EXPECT_EQ(contradiction_text("node-b", kSecond, "node-a", {kFirst, 500}),
            "node-b continues it as lineage 2, from step 10; node-a has lineage 1 at step 500");
}

}  // namespace
}  // namespace tg::daemon
