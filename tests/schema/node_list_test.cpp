#include "schema/options/node_list.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tg::schema {
namespace {

Per<Seat, PeerAddress> lines(const std::vector<std::string>& names, std::uint16_t port = 7700) {
  Per<Seat, PeerAddress> all;
  for (const std::string& name : names) all.push_back({name, name + ".lab", port});
  return all;
}

TEST(NodeList, ANodeKeepsItsSeat) {
  NodeList nodes(lines({"node-b", "node-d"}));
  const NodeList copy = nodes;
  EXPECT_TRUE(nodes.set_lines(lines({"node-a", "node-b", "node-c"})));
  EXPECT_EQ(copy.place_of("node-b"), Seat(0));
  EXPECT_EQ(copy.place_of("node-a"), Seat(2));
  EXPECT_EQ(copy[Seat(3)], "node-c");
  EXPECT_EQ(copy.place_of("node-d"), Seat(1)) << "known";
  EXPECT_EQ(copy.listed("node-d"), std::nullopt);
  EXPECT_EQ(copy.size(), 3u);
  EXPECT_EQ(copy.places(), (std::vector{Seat(0), Seat(2), Seat(3)}));
  EXPECT_EQ(joined(copy), "node-b, node-a, node-c");
  EXPECT_TRUE(nodes.set_lines(lines({"node-d"}, 7800)));
  EXPECT_EQ(copy.listed("node-d"), Seat(1));
  EXPECT_EQ(copy.line(Seat(1)).port, 7800);
}

TEST(NodeList, LinesAreInOneOrderOnEveryNode) {
  NodeList nodes(lines({"node-b"}));
  nodes.set_lines(lines({"node-c", "node-a", "node-b"}));
  EXPECT_EQ(nodes.lines().front().name, "node-a");
  EXPECT_EQ(nodes.lines().back().name, "node-c");
}

TEST(NodeList, OneThatOnlyAVoteNamesIsAbsent) {
  NodeList nodes{"node-a"};
  nodes.add_absent("node-x");
  nodes.add_absent("node-x");
  EXPECT_EQ(nodes.known(), 2u);
  EXPECT_FALSE(nodes.is_listed(Seat(1)));
  EXPECT_EQ(nodes.line(Seat(1)).host, "");
}

TEST(NodeList, MoreNamesThanItHasRoomForChangeNothing) {
  NodeList nodes(lines({"node-a"}));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < NodeList::kMaxNodes; ++i) names.push_back("n" + std::to_string(i));
  const std::uint64_t version = nodes.version();
  EXPECT_FALSE(nodes.set_lines(lines(names)));
  EXPECT_EQ(nodes.version(), version);
  EXPECT_TRUE(nodes.is_listed(Seat(0)));
}

TEST(NodeList, OtherThreadsReadWhileItGrows) {
  NodeList nodes(lines({"node-a"}));
  std::vector<std::string> names{"node-a"};
  std::thread reader([copy = nodes] {
    while (copy.size() < 100)
      for (const Seat seat : copy.places()) EXPECT_EQ(copy.line(seat).name, copy[seat]);
  });
  while (nodes.size() < 100) {
    names.push_back("n" + std::to_string(names.size()));
    nodes.set_lines(lines(names));
  }
  reader.join();
}

}  // namespace
}  // namespace tg::schema
