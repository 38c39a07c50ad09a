// The cost model's choice: what is measured decides, what is asked binds, and without measurements there is a rule.
#include "daemon/membership/choose_exchange.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;

using Pair = std::pair<ExchangeKind, Coding>;
Pair pair_of(const schema::Commit& commit) { return {commit.exchange, commit.coding}; }

// Four members whose kernels take 60 / 100 ms (direct, raw / entropy) and 50 / 70 ms (sharded) for 240 / 110 Mbit and
// 120 / 55 Mbit.
std::vector<schema::Vote> four_votes(double link_mbps) {
  schema::Vote vote;
  vote.accepted = true;
  vote.link_mbps = link_mbps;
  vote.codec_seconds = {0.060, 0.100, 0.050, 0.070};
  vote.sent_bits = {240e6, 110e6, 120e6, 55e6};
  return std::vector<schema::Vote>(4, vote);
}

TEST(ChooseExchange, ASlowLinkWantsTheFewestBits) {
  EXPECT_EQ(pair_of(choose_exchange({}, four_votes(100))), (Pair{ExchangeKind::kSharded, Coding::kEntropy}));
}

TEST(ChooseExchange, AFastLinkWantsTheLeastWork) {
  EXPECT_EQ(pair_of(choose_exchange({}, four_votes(40'000))), (Pair{ExchangeKind::kSharded, Coding::kRaw}));
}

TEST(ChooseExchange, TheSlowestLinkAndTheSlowestProcessorCount) {
  std::vector<schema::Vote> votes = four_votes(40'000);
  votes[2].link_mbps = 100;
  EXPECT_EQ(slowest_link({}, votes), 100);
  EXPECT_EQ(choose_exchange({}, votes).coding, Coding::kEntropy);
  votes = four_votes(1'000);
  votes[3].codec_seconds = {0.06, 2.0, 0.05, 2.0};
  EXPECT_EQ(choose_exchange({}, votes).coding, Coding::kRaw);
}

TEST(ChooseExchange, OneTripIsLessThanTwoWhereTheRestIsSmall) {
  std::vector<schema::Vote> votes = four_votes(1'000);
  for (schema::Vote& vote : votes) {
    vote.codec_seconds = {1e-5, 1e-5, 1e-5, 1e-5};
    vote.sent_bits = {3e4, 2e4, 2.5e4, 1.5e4};
  }
  EXPECT_EQ(choose_exchange({}, votes).exchange, ExchangeKind::kDirect);
}

TEST(ChooseExchange, WhatIsAskedBinds) {
  EXPECT_EQ(pair_of(choose_exchange({"direct", "auto", 0}, four_votes(100))),
            (Pair{ExchangeKind::kDirect, Coding::kEntropy}));
  EXPECT_EQ(pair_of(choose_exchange({"auto", "raw", 0}, four_votes(100))),
            (Pair{ExchangeKind::kSharded, Coding::kRaw}));
  EXPECT_EQ(pair_of(choose_exchange({"direct", "raw", 0}, four_votes(100))),
            (Pair{ExchangeKind::kDirect, Coding::kRaw}));
  EXPECT_EQ(slowest_link({"auto", "auto", 250}, four_votes(100)), 250) << "the job told";
}

TEST(ChooseExchange, WithoutMeasurementsByRule) {
  EXPECT_EQ(pair_of(choose_exchange({}, std::vector<schema::Vote>(2))),
            (Pair{ExchangeKind::kDirect, Coding::kEntropy}));
  EXPECT_EQ(pair_of(choose_exchange({}, std::vector<schema::Vote>(3))),
            (Pair{ExchangeKind::kSharded, Coding::kEntropy}));
  EXPECT_EQ(pair_of(choose_exchange({"sharded", "raw", 0}, std::vector<schema::Vote>(2))),
            (Pair{ExchangeKind::kSharded, Coding::kRaw}));
  std::vector<schema::Vote> votes = four_votes(100);
  votes[1].link_mbps = 0;  // one member could not measure
  EXPECT_EQ(pair_of(choose_exchange({}, votes)), (Pair{ExchangeKind::kSharded, Coding::kEntropy}));
}

TEST(ChooseExchange, TheWindowIsAFewMillisecondsOfTheLink) {
  EXPECT_EQ(window_for(1'000, 2), 500'000u);
  EXPECT_EQ(window_for(1'000, 6), 100'000u);
  EXPECT_EQ(window_for(1, 8), schema::kLeastWindowBytes);
  EXPECT_EQ(window_for(100'000, 2), schema::kMostWindowBytes);
  EXPECT_EQ(window_for(0, 2), schema::kMostWindowBytes) << "not known";
  EXPECT_EQ(choose_exchange({"auto", "auto", 250}, four_votes(100)).window_bytes, window_for(250, 4));
}

TEST(ChooseExchange, ChunksAreAMillisecondOfTheLink) {
  EXPECT_EQ(chunk_for(1'000), schema::kLargeChunkParameters);
  EXPECT_EQ(chunk_for(100), 100'000u);
  EXPECT_EQ(chunk_for(1), schema::kSmallChunkParameters);
  EXPECT_EQ(chunk_for(0), schema::kLargeChunkParameters) << "not known";
}

TEST(ChooseExchange, OwnScalersAskForDirect) {
  schema::JobSpec job;
  job.scaler_sharing = "none";
  EXPECT_EQ(asked_of(job).exchange, "direct");
}

}  // namespace
}  // namespace tg::daemon
