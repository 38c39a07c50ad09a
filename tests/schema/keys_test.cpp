#include "schema/keys/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "schema/limits.h"
#include "tests/daemon/temporary_directory.h"

namespace tg::schema {
namespace {

constexpr const char* kCluster = "cluster = 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

ClusterKeys cluster_of(const std::string& text) {
  Result<ClusterKeys> keys = parse_cluster_keys(text, "cluster.key");
  EXPECT_TRUE(keys.ok()) << keys.error().message;
  return keys.ok() ? *std::move(keys) : ClusterKeys();
}

void expect_refused(const Status& status, const std::string& part) {
  ASSERT_FALSE(status.ok()) << "taken, though " << part;
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

Status cluster_status(const std::string& text) {
  const Result<ClusterKeys> keys = parse_cluster_keys(text, "cluster.key");
  return keys.ok() ? Status() : Status(keys.error());
}

// Nodes of two builds form one mesh only if they derive the same pairs: this may never change.
TEST(Keys, DerivedPairsAreFrozen) {
  const Key cluster = cluster_of(kCluster).clusters.at(0);
  EXPECT_EQ(short_key(node_keys(cluster, "node-a").public_key), "efb3eb60");
  EXPECT_EQ(short_key(control_keys(cluster).public_key), "705c89de");
  EXPECT_EQ(short_key(member_keys(cluster).public_key), "91f490ca");
}

TEST(Keys, EachNodeAndEachClusterHasItsOwnPair) {
  const Key cluster = draw_cluster_key(), other = draw_cluster_key();
  EXPECT_NE(cluster, other);
  EXPECT_NE(node_keys(cluster, "node-a").public_key, node_keys(cluster, "node-b").public_key);
  EXPECT_NE(node_keys(cluster, "node-a").public_key, node_keys(other, "node-a").public_key);
  // A node cannot be named so that it gets another purpose's pair.
  EXPECT_NE(node_keys(cluster, "control").public_key, control_keys(cluster).public_key);
}

TEST(Keys, AFileReadsBackAsItWasWritten) {
  const Key first = draw_cluster_key(), second = draw_cluster_key();
  const Operator alice{"alice", Rights::kFull, draw_pair().public_key},
      bob{"bob", Rights::kRead, draw_pair().public_key};
  const ClusterKeys keys = cluster_of("# for people\n" + format_cluster(first) + format_cluster(second) +
                                      format_operator(alice) + format_operator(bob));
  EXPECT_EQ(keys.clusters, (std::vector<Key>{first, second}));
  EXPECT_EQ(keys.operators, (std::vector<Operator>{alice, bob}));
}

TEST(Keys, AnOperatorKnowsTheControlPortOfEveryClusterKey) {
  const Key first = draw_cluster_key(), second = draw_cluster_key();
  const KeyPair own = draw_pair();
  const Result<OperatorKeys> keys =
      parse_operator_keys(format_operator_keys("alice", own, {first, second}), "alice.key");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->name, "alice");
  ASSERT_EQ(keys->credentials.size(), 2u);
  EXPECT_EQ(keys->credentials[0].own.public_key, own.public_key);
  EXPECT_EQ(keys->credentials[0].control, control_keys(first).public_key);
  EXPECT_EQ(keys->credentials[1].control, control_keys(second).public_key);
}

TEST(Keys, AClusterKeyFileServesAnOperatorToo) {
  const Key cluster = draw_cluster_key();
  const Result<OperatorKeys> keys = parse_operator_keys(format_cluster(cluster), "cluster.key");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  ASSERT_EQ(keys->credentials.size(), 1u);
  EXPECT_EQ(keys->credentials[0].own.public_key, member_keys(cluster).public_key);
  EXPECT_EQ(keys->credentials[0].control, control_keys(cluster).public_key);
}

TEST(Keys, OddFilesAreRefusedWithTheirPlace) {
  const std::string line = kCluster;
  expect_refused(cluster_status(""), "0 cluster keys");
  expect_refused(cluster_status(line + line + line), "3 cluster keys");
  expect_refused(cluster_status("cluster = 00\n"), "cluster.key:1");
  expect_refused(cluster_status("-----BEGIN OPENSSH PRIVATE KEY-----\n"), "is it a key file? tgctl keygen makes them");
  expect_refused(cluster_status(line + "operator = alice full\n"), "cluster.key:2");
  expect_refused(cluster_status(line + "operator = Alice full " + line.substr(10)), "cluster.key:2");
  expect_refused(cluster_status(line + "operator = alice some " + line.substr(10)), "read|full");
  expect_refused(cluster_status(line + "secret = " + line.substr(10)), "unknown key \"secret\"");
  expect_refused(cluster_status(format_operator_keys("alice", draw_pair(), {draw_cluster_key()})),
                 "cluster.key is an operator's key file");
  const std::string alice = "operator = alice full " + line.substr(10);
  expect_refused(cluster_status(line + alice + alice), "two operators are named alice");
  expect_refused(parse_operator_keys("operator = alice\n", "alice.key").error(), "not a key file");
}

class KeyFile : public testing::Test {
 protected:
  std::string file(const std::string& text, mode_t mode) {
    const std::string path = directory_.path() + "/cluster.key";
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  tests::TemporaryDirectory directory_;
};

TEST_F(KeyFile, ReadableByOthersIsRefused) {
  const std::string path = file(kCluster, 0644);
  expect_refused(read_key_file(path).error(), "chmod 600 " + path);
  file(kCluster, 0640);
  expect_refused(read_key_file(path).error(), "chmod 600 " + path);
  file(kCluster, 0600);
  const Result<std::string> text = read_key_file(path);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, kCluster);
}

TEST_F(KeyFile, AnotherKindOfFileIsNamed) {
  expect_refused(read_key_file("/dev/null").error(), "not a regular file");
  expect_refused(read_key_file("/nowhere/cluster.key").error(), "/nowhere/cluster.key");
  expect_refused(read_key_file(file(std::string(kMaxKeyFileBytes + 1, '#'), 0600)).error(), "too large");
}

}  // namespace
}  // namespace tg::schema
