// Nodes on one host share its link, once, and talk to each other without it.
#include "daemon/forecast/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/forecast/forecast.h"
#include "tests/forecast/samples.h"

namespace tg::daemon {
namespace {

const std::vector<HostNodes> kTwoOfTwo = {{"lab1", {"node-a", "node-b"}}, {"lab2", {"node-c", "node-d"}}};

std::vector<HostNodes> hosts(std::initializer_list<const char*> addresses) {
  Per<Seat, schema::PeerAddress> peers;
  for (const char* const address : addresses)
    peers.push_back({"node-" + std::string(1, static_cast<char>('a' + peers.size())), address,
                     static_cast<std::uint16_t>(7700 + 2 * peers.size())});
  return hosts_of(peers);
}

schema::BenchReply bench(double link_mbps) {
  schema::BenchReply bench = assumed_bench({"lenet", 64, 1e-3, 10});
  bench.node = "node-a";
  bench.cores = bench.threads = 1;
  bench.link_mbps = link_mbps;
  return bench;
}

Forecast predicted(std::uint64_t nodes, const std::vector<HostNodes>& on, double line_mbps, double measured = 941) {
  Question question;
  question.job = replay_task(ModelKind::kAlexnet).job;
  question.nodes = nodes;
  question.line_mbps = line_mbps;
  question.hosts = on;
  return forecast(question, bench(measured)).value();
}

bool says(const Forecast& forecast, const std::string& words) {
  return std::any_of(forecast.reply.assumptions.begin(), forecast.reply.assumptions.end(),
                     [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

TEST(Hosts, AreThoseOfThePeerLines) {
  EXPECT_EQ(hosts({"lab1", "lab2", "lab3"}).size(), 3u);
  EXPECT_EQ(shared_links(hosts({"lab1", "lab2"})), "");
  EXPECT_EQ(shared_links(hosts({"lab1", "lab2", "lab1"})), "node-a and node-c share lab1's link");
  EXPECT_EQ(shared_links(hosts({"10.0.0.1", "10.0.0.1", "10.0.0.1", "::2", "::2"})),
            "node-a, node-b and node-c share 10.0.0.1's link; node-d and node-e share ::2's link");
  EXPECT_EQ(hosts({"127.0.0.1", "localhost", "127.0.5.7", "::1"}).size(), 1u);
  EXPECT_EQ(most_nodes(hosts({"lab1", "lab2", "lab1"})), 2u);
}

TEST(Hosts, ALinkCarriesWhatLeavesItsHost) {
  EXPECT_EQ(crossings(4, 1), 1);
  EXPECT_DOUBLE_EQ(crossings(4, 2), 4.0 / 3) << "two members, each to two others of three";
  EXPECT_DOUBLE_EQ(crossings(8, 4), 16.0 / 7);
  EXPECT_EQ(crossings(3, 2), 1) << "two members, each to one other of two";
  EXPECT_EQ(crossings(4, 4), 1);
}

TEST(Hosts, AToldLineIsCountedOnce) {
  const auto apart = predicted(4, {}, 1000).reply.asked, together = predicted(4, kTwoOfTwo, 1000).reply.asked;
  EXPECT_NEAR(together.direct.wire / apart.direct.wire, 4.0 / 3, 1e-6);
  EXPECT_NEAR(together.sharded.wire / apart.sharded.wire, 4.0 / 3, 1e-6);
  EXPECT_EQ(together.ring.wire, apart.ring.wire) << "neighbours on one host stand side by side";
  EXPECT_EQ(together.direct.sent_bytes, apart.direct.sent_bytes);
  EXPECT_GT(together.sharded.step, apart.sharded.step);
}

// A node that measures alone sends two thirds of its burst over the link.
TEST(Hosts, AMeasuredRateIsOfTheLinkAndWhatPassesItBy) {
  const Forecast together = predicted(4, kTwoOfTwo, 0, 900);
  EXPECT_DOUBLE_EQ(together.reply.payload_mbps, 600);
  EXPECT_NEAR(together.reply.asked.direct.wire / predicted(4, {}, 0, 450).reply.asked.direct.wire, 1, 1e-6)
      << "half of what one has alone";
}

TEST(Hosts, ThePlanSaysWhoSharesALink) {
  EXPECT_TRUE(
      says(predicted(4, kTwoOfTwo, 1000), "node-a and node-b share lab1's link; node-c and node-d share lab2's"));
  const Forecast others = predicted(8, kTwoOfTwo, 1000);
  EXPECT_TRUE(says(others, "each node has a host of its own; here node-a and node-b share lab1's link"));
  EXPECT_EQ(others.reply.asked.direct.wire, predicted(8, {}, 1000).reply.asked.direct.wire);
  EXPECT_FALSE(says(predicted(2, hosts({"lab1", "lab2"}), 1000), "'s link"));
}

TEST(Hosts, AMeshOnOneHostStandsForOneOfMachines) {
  const auto one_host = hosts({"127.0.0.1", "127.0.0.1"});
  const Forecast tried = predicted(2, one_host, 1000);
  EXPECT_EQ(tried.reply.asked.direct.wire, predicted(2, {}, 1000).reply.asked.direct.wire);
  EXPECT_TRUE(says(tried, "all nodes of this mesh are on one host"));
}

}  // namespace
}  // namespace tg::daemon
