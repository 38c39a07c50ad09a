// The rule: the members' number chooses the exchange, the slowest link and the fewest threads choose the coding, what
// is asked goes before both.
#include "daemon/membership/choose_exchange.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;

std::vector<schema::Vote> votes(std::size_t members, double link_mbps, std::uint16_t workers = 1) {
  schema::Vote vote;
  vote.accepted = true;
  vote.link_mbps = link_mbps;
  vote.workers = workers;
  return std::vector<schema::Vote>(members, vote);
}

schema::Commit chosen(const ExchangePreference& asked, const std::vector<schema::Vote>& by) {
  return choose_exchange(asked, by).commit;
}

TEST(ChooseExchange, DirectUpToTwoShardedFromThree) {
  for (const std::size_t members : {1u, 2u, 3u, 4u, 127u})
    EXPECT_EQ(chosen({}, votes(members, 100)).exchange, members <= 2 ? ExchangeKind::kDirect : ExchangeKind::kSharded);
}

TEST(ChooseExchange, RawWhereTheLinkIsFasterThanTheThreadsCode) {
  EXPECT_EQ(chosen({}, votes(4, kRawMbps)).coding, Coding::kEntropy);
  EXPECT_EQ(chosen({}, votes(4, kRawMbps + 1)).coding, Coding::kRaw);
  EXPECT_EQ(chosen({}, votes(4, kRawMbps + 1, 2)).coding, Coding::kEntropy);
  EXPECT_EQ(chosen({}, votes(4, 8 * kRawMbps + 1, 8)).coding, Coding::kRaw);
}

TEST(ChooseExchange, TheSlowestLinkAndTheFewestThreadsCount) {
  std::vector<schema::Vote> mixed = votes(4, 40'000, 8);
  EXPECT_EQ(chosen({}, mixed).coding, Coding::kRaw);
  mixed[2].link_mbps = 100;
  EXPECT_EQ(slowest_link({}, mixed), 100);
  EXPECT_EQ(chosen({}, mixed).coding, Coding::kEntropy);
  mixed = votes(4, 1000, 8);
  EXPECT_EQ(chosen({}, mixed).coding, Coding::kEntropy);
  mixed[3].workers = 1;
  EXPECT_EQ(chosen({}, mixed).coding, Coding::kRaw);
}

TEST(ChooseExchange, WithoutALinkEntropy) {
  EXPECT_EQ(chosen({}, votes(2, 0)).coding, Coding::kEntropy);
  std::vector<schema::Vote> one_silent = votes(4, 40'000);
  one_silent[1].link_mbps = 0;
  EXPECT_EQ(slowest_link({}, one_silent), 0);
  EXPECT_EQ(chosen({}, one_silent).coding, Coding::kEntropy);
}

TEST(ChooseExchange, AnExplicitChoiceBinds) {
  EXPECT_EQ(chosen({ExchangeKind::kDirect, {}, 0}, votes(4, 100)).exchange, ExchangeKind::kDirect);
  EXPECT_EQ(chosen({ExchangeKind::kSharded, {}, 0}, votes(2, 100)).exchange, ExchangeKind::kSharded);
  EXPECT_EQ(chosen({{}, Coding::kRaw, 0}, votes(4, 100)).coding, Coding::kRaw);
  EXPECT_EQ(chosen({{}, Coding::kEntropy, 0}, votes(4, 40'000)).coding, Coding::kEntropy);
  EXPECT_EQ(slowest_link({{}, {}, 250}, votes(4, 100)), 250) << "the job sets it";
  EXPECT_EQ(chosen({{}, {}, 2 * kRawMbps}, votes(4, 0)).coding, Coding::kRaw);
  EXPECT_EQ(chosen({{}, {}, kRawMbps + 1}, votes(4, 0)).coding, Coding::kEntropy) << "of a line, less is payload";
  EXPECT_TRUE(allowed({ExchangeKind::kDirect, {}, 0}, ExchangeKind::kDirect, Coding::kRaw));
  EXPECT_FALSE(allowed({ExchangeKind::kDirect, {}, 0}, ExchangeKind::kSharded, Coding::kRaw));
  EXPECT_FALSE(allowed({{}, Coding::kEntropy, 0}, ExchangeKind::kSharded, Coding::kRaw));
}

TEST(ChooseExchange, SaysWhy) {
  EXPECT_EQ(choose_exchange({}, votes(4, 940.6)).why,
            "sharded among 4 members, raw at 941 Mbit/s, which is more than 700 (700 for each of 1 thread)");
  EXPECT_EQ(
      choose_exchange({}, votes(2, 940.6, 2)).why,
      "direct between two members, entropy at 941 Mbit/s, which is not more than 1400 (700 for each of 2 threads)");
  EXPECT_EQ(choose_exchange({}, votes(1, 0)).why, "direct for one member, entropy where no link was measured");
  EXPECT_EQ(choose_exchange({ExchangeKind::kSharded, Coding::kRaw, 0}, votes(2, 100)).why,
            "sharded as the job says, raw as the job says");
}

TEST(ChooseExchange, TheWindowIsAFewMillisecondsOfTheLink) {
  EXPECT_EQ(window_for(1'000, 2), 500'000u);
  EXPECT_EQ(window_for(1'000, 6), 100'000u);
  EXPECT_EQ(window_for(1, 8), schema::kMinWindowBytes);
  EXPECT_EQ(window_for(100'000, 2), schema::kMaxWindowBytes);
  EXPECT_EQ(window_for(0, 2), schema::kMaxWindowBytes) << "not known";
  EXPECT_EQ(chosen({{}, {}, 250}, votes(4, 100)).window_bytes, window_for(250, 4));
}

TEST(ChooseExchange, ChunksAreAMillisecondOfTheLink) {
  EXPECT_EQ(chunk_for(1'000), schema::kLargeChunkParameters);
  EXPECT_EQ(chunk_for(100), 100'000u);
  EXPECT_EQ(chunk_for(1), schema::kSmallChunkParameters);
  EXPECT_EQ(chunk_for(0), schema::kLargeChunkParameters) << "not known";
  EXPECT_EQ(chosen({}, votes(4, 100)).chunk_parameters, chunk_for(100));
}

TEST(ChooseExchange, OwnScalersAskForDirect) {
  schema::JobSpec job;
  job.scaler_sharing = schema::ScalerSharing::kNone;
  EXPECT_EQ(exchange_preference(job).exchange, ExchangeKind::kDirect);
}

}  // namespace
}  // namespace tg::daemon
