// A node's configuration: where values come from, and what is refused with which words.
#include "schema/options/node_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "schema/limits.h"

namespace tg::schema {
namespace {

const std::string kPeers =
    "peer = node-b@127.0.0.1:7710\n"
    "peer = node-a@127.0.0.1:7700\n";

class NodeConfigTest : public testing::Test {
 protected:
  ~NodeConfigTest() override { std::filesystem::remove(path_); }

  Result<CommandLine> parse(const std::string& file, std::vector<std::string> flags = {},
                            std::vector<std::string> variables = {}) {
    std::ofstream(path_) << file;
    std::vector<const char*> argv{"tgd", "--config", path_.c_str()};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    for (const std::string& variable : variables) {
      const std::size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    Result<CommandLine> line = parse_node_command_line(static_cast<int>(argv.size()), argv.data());
    for (const std::string& variable : variables) unsetenv(variable.substr(0, variable.find('=')).c_str());
    return line;
  }

  std::string error_of(const std::string& file, std::vector<std::string> flags = {},
                       std::vector<std::string> variables = {}) {
    const Result<CommandLine> line = parse(file, std::move(flags), std::move(variables));
    if (line.ok()) return "";
    EXPECT_EQ(line.error().kind, ErrorKind::kUsage);
    return line.error().message;
  }

  void expect_error(const std::string& file, const std::string& part, std::vector<std::string> flags = {},
                    std::vector<std::string> variables = {}) {
    const std::string message = error_of(file, std::move(flags), std::move(variables));
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  }

  const std::string path_ = testing::TempDir() + "node_config_test." + std::to_string(getpid()) + ".conf";
};

TEST_F(NodeConfigTest, ReadsAFile) {
  const auto line = parse("node = node-a\n" + kPeers + "peer-timeout = 2s\nthreads = 3\n");
  ASSERT_TRUE(line.ok()) << line.error().message;
  const NodeConfig& config = line->config;
  EXPECT_EQ(config.peers.front().name, "node-a");  // sorted
  EXPECT_EQ(config.seat(), Seat(0));
  EXPECT_EQ(config.self().host, "127.0.0.1");
  EXPECT_EQ(config.self().port, 7700);
  EXPECT_EQ(config.peer_timeout_ms, 2000u);
  EXPECT_EQ(config.threads, 3u);
  EXPECT_EQ(config.state_dir, "tgd-state");
  EXPECT_EQ(config.listen, "127.0.0.1");
}

TEST_F(NodeConfigTest, AWeightIsAWholeNumberFrom1To1000) {
  EXPECT_EQ(parse("node = node-a\n" + kPeers)->config.weight, 1u);
  EXPECT_EQ(parse("node = node-a\nweight = 1000\n" + kPeers)->config.weight, 1000u);
  for (const char* bad : {"0", "1001", "1.5", "-1", ""})
    expect_error("node = node-a\nweight = " + std::string(bad) + "\n" + kPeers, "whole number from 1 to 1000");
}

TEST_F(NodeConfigTest, ListenMayDifferFromTheReachableAddress) {
  const auto line = parse("node = node-a\nlisten = 127.0.0.1:7800\ncontrol-allow = 10.0.0.9, fd00::/8\n" + kPeers);
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->config.listen, "127.0.0.1");
  EXPECT_EQ(line->config.mesh_port(), 7800);
  EXPECT_EQ(line->config.control_port(), 7801);
  EXPECT_EQ(line->config.self().port, 7700);
  EXPECT_EQ(line->config.control_allow, (std::vector<std::string>{"10.0.0.9", "fd00::/8"}));
}

TEST_F(NodeConfigTest, FlagsWinOverEnvironmentOverFile) {
  const std::string file = "node = node-a\nthreads = 1\npeer-timeout = 1s\nlog-level = debug\n" + kPeers;
  const auto line = parse(file, {"--threads", "3"}, {"TGD_THREADS=2", "TGD_PEER_TIMEOUT=2s", "HOME=/x"});
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->config.threads, 3u);
  EXPECT_EQ(line->config.peer_timeout_ms, 2000u);
  EXPECT_EQ(line->config.log_level, LogLevel::kDebug);
}

TEST_F(NodeConfigTest, PeersOfALaterSourceReplaceTheList) {
  const auto flags = parse("node = node-c\n" + kPeers, {"--peer", "node-c@127.0.0.1:1", "--peer=node-d@127.0.0.1:5"});
  ASSERT_TRUE(flags.ok()) << flags.error().message;
  EXPECT_EQ(flags->config.peers.size(), 2u);
  const auto variable = parse("node = node-c\n" + kPeers, {}, {"TGD_PEER=node-c@127.0.0.1:1,node-d@127.0.0.1:5"});
  ASSERT_TRUE(variable.ok()) << variable.error().message;
  EXPECT_EQ(variable->config.peers.size(), 2u);
}

TEST_F(NodeConfigTest, FileMayComeFromTheEnvironment) {
  std::ofstream(path_) << "node = node-a\n" + kPeers;
  const char* const argv[] = {"tgd", "--check-config"};
  setenv("TGD_CONFIG", path_.c_str(), 1);
  const auto line = parse_node_command_line(2, argv);
  unsetenv("TGD_CONFIG");
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_TRUE(line->check_config);
  EXPECT_EQ(line->config.node, "node-a");
}

TEST_F(NodeConfigTest, UnknownKeysNamePlaceAndNearest) {
  expect_error("node = node-a\n" + kPeers + "thread = 2\n",
               path_ + ":4: unknown key \"thread\"; did you mean \"threads\"?");
  expect_error("node = node-a\n" + kPeers, "unknown option --thread; did you mean --threads?", {"--thread", "2"});
  expect_error("node = node-a\n" + kPeers, "unknown variable TGD_THREAD; did you mean TGD_THREADS?", {},
               {"TGD_THREAD=2"});
  EXPECT_EQ(error_of("node = node-a\n" + kPeers, {}, {"TGD_SERVICE_PORT_7700_TCP_ADDR=10.0.0.1"}), "");
  expect_error("node = node-a\n" + kPeers, "takes only options", {"node-a"});
  expect_error("node = node-a\nnode = node-b\n" + kPeers, ":2: node is set twice");
  expect_error("node node-a\n", ":1: \"node node-a\" is not of the form key = value");
}

TEST_F(NodeConfigTest, AKeyOfAJobIsNamed) {
  expect_error("node = node-a\nlearning-rate = 0.1\n", "it is a key of a job, which tgctl help job explains");
}

// What the parser of options refuses has its place, too.
TEST_F(NodeConfigTest, OptionsWithoutAValueOrGivenTwiceAreRefused) {
  const std::string file = "node = node-a\n" + kPeers;
  expect_error(file, "command line: threads is set twice", {"--threads", "1", "--threads", "2"});
  expect_error(file, "command line: the required argument for option '--threads' is missing", {"--threads"});
  expect_error(file, "environment: threads: \"many\" is not a whole number", {}, {"TGD_THREADS=many"});
  EXPECT_EQ(error_of(file, {}, {"TGD_VERSION=1"}), "") << "no key of a node";
}

TEST_F(NodeConfigTest, WithoutAConfigurationTheNextActionIsPrinted) {
  const char* const argv[] = {"tgd"};
  const auto line = parse_node_command_line(1, argv);
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.error().message.find("tgd --config tgd.conf; tgctl help node > tgd.conf"), std::string::npos);
}

TEST_F(NodeConfigTest, APeerKnowsItsLine) {
  EXPECT_EQ(parse("node = node-a\n" + kPeers)->config.peers.front().place, path_ + ":3: ");
}

TEST_F(NodeConfigTest, AMissingFolderIsAWarning) {
  const std::string file = "node = node-a\n" + kPeers;
  EXPECT_TRUE(parse(file)->warnings.empty());
  EXPECT_TRUE(parse(file + "data-dir = /tmp\n")->warnings.empty());
  const auto missing = parse(file + "data-dir = /srv/mnsit\n");
  ASSERT_TRUE(missing.ok()) << missing.error().message;
  ASSERT_EQ(missing->warnings.size(), 1u);
  EXPECT_NE(missing->warnings[0].find("data-dir = /srv/mnsit: No such file or directory"), std::string::npos);
  EXPECT_NE(parse(file + "data-dir = mnsit\n")
                ->warnings.at(0)
                .find("data-dir = mnsit: No such file or directory in " + std::filesystem::current_path().string()),
            std::string::npos);
  EXPECT_NE(parse(file + "data-dir = /etc/hostname\n")->warnings.at(0).find("is not a folder"), std::string::npos);
  expect_error(file + "data-dir = ~/mnist\n", ":4: data-dir: \"~/mnist\" is not a path: ~ is not expanded");
}

TEST_F(NodeConfigTest, BadValuesAreNamed) {
  expect_error("kernels = avx\n", ":1: kernels: \"avx\" is not one of auto | avx512 | avx2 | scalar");
  expect_error("engine = gpu\n", ":1: engine: \"gpu\" is not one of auto | cpu | cuda");
  expect_error("log-level = loud\n", "log-level");
  expect_error("peer-timeout = 10\n", "10\" is not a duration");
  expect_error("insecure = yes\n", "\"yes\" is not true or false");
  expect_error("threads = -1\n", "threads");
  expect_error("fault = explode@forward:3\n", "fault");
  expect_error("fault = kill@forward\n", "fault");
  expect_error("node = node-a\nstate-dir =\n" + kPeers, "state-dir is empty");
  EXPECT_EQ(error_of("node = node-a\nfault = kill@scaler wait:20\n" + kPeers), "");
}

TEST_F(NodeConfigTest, PeerLines) {
  const auto peer = parse_peer("node-a@lab.example:7700");
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->host, "lab.example");
  for (const char* bad :
       {"", "node-a", "node-a@", "node-a@host", "node-a@host:", "node-a@:7700", "@host:7700", "Node@host:7700",
        "a@host:0", "a@host:65535", "a@host:77x", "a@ho st:77", "a@host:-1", "a@tcp://h:1"}) {
    EXPECT_FALSE(parse_peer(bad).ok()) << bad;
  }
  EXPECT_FALSE(parse_peer(std::string(kMaxNameBytes + 1, 'a') + "@h:1").ok());
  EXPECT_TRUE(parse_peer("a@h:65534").ok());
}

TEST_F(NodeConfigTest, PeersMustMakeAMesh) {
  expect_error(kPeers, "node is not set");
  expect_error("node = Node\n" + kPeers, "node = Node");
  expect_error("node = node-a\n", "no peer lines");
  expect_error("node = node-x\n" + kPeers, "node node-x has no peer line; did you mean node = node-");
  expect_error("node = node-a\n" + kPeers + "peer = node-a@127.0.0.1:7720\n", "two peer lines are named node-a");
  expect_error("node = node-a\n" + kPeers + "peer = node-c@127.0.0.1:7701\n", "both use 127.0.0.1:7701");
  std::string many = "node = n0\n";
  for (std::size_t i = 0; i <= kMaxMembers; ++i) {
    many += "peer = n" + std::to_string(i) + "@127.0.0.1:" + std::to_string(1000 + 2 * i) + "\n";
  }
  expect_error(many, "128 peers are too many; at most 127");
}

TEST_F(NodeConfigTest, ListeningBeyondLoopbackIsAChoice) {
  const std::string file = "node = node-a\n" + kPeers;
  expect_error(file + "listen = 0.0.0.0\n", "insecure = true");
  EXPECT_EQ(error_of(file + "listen = 0.0.0.0\ninsecure = true\n"), "");
  EXPECT_EQ(error_of(file + "listen = 0.0.0.0\n", {"--insecure"}), "");
  EXPECT_EQ(error_of(file + "listen = 127.0.0.2\n"), "");
  EXPECT_EQ(error_of(file + "listen = localhost\n"), "");
  EXPECT_EQ(error_of(file + "listen = 127.0.0.1:7800\n"), "");
  expect_error(file + "listen = 127.0.0.1:65535\n", "a port from 1 to 65534");
  expect_error(file + "listen = 0.0.0.0\n", "tgctl keygen");
  EXPECT_EQ(error_of(file + "listen = 0.0.0.0\nkey-file = cluster.key\n"), "");
  expect_error(file + "listen = 0.0.0.0\nkey-file = cluster.key\ninsecure = true\n", "remove one of the two lines");
  expect_error(file + "listen = *\n", "is not an address such as");
  expect_error(file + "listen = 127.0.0.256\n", "is not an address such as");
}

TEST_F(NodeConfigTest, Ipv6StandsInBrackets) {
  const auto peer = parse_peer("node-a@[fd00::1]:7700");
  ASSERT_TRUE(peer.ok()) << peer.error().message;
  EXPECT_EQ(peer->host, "fd00::1");
  EXPECT_EQ(peer->port, 7700);
  for (const char* host : {"[fe80::1]", "[fe80::1%eth0]", "fe80::1%eth0", "[febf::2]"}) {
    const auto local = parse_peer("a@" + std::string(host) + ":7700");
    ASSERT_FALSE(local.ok()) << host;
    EXPECT_EQ(local.error().message.find(std::string(host) + " is a link-local address"), 0u) << local.error().message;
  }
  for (const char* listen : {"fe80::1", "fe80::1%eth0", "[fe80::1%eth0]:7800"})
    expect_error("node = a\npeer = a@[fd00::1]:7700\nlisten = " + std::string(listen) + "\n", "link-local address");
  for (const char* bad : {"a@fd00::1:7700", "a@[fd00::1:7700", "a@[fd00::g]:7700", "a@[10.0.0.1]:7700", "a@[]:1"})
    EXPECT_FALSE(parse_peer(bad).ok()) << bad;
  const std::string mesh = "node = a\npeer = a@[fd00::1]:7700\npeer = b@[fd00::2]:7700\n";
  for (const char* listen : {"::", "[::]", "fd00::1"})
    EXPECT_EQ(error_of(mesh + "insecure = true\nlisten = " + listen + "\n"), "") << listen;
  expect_error(mesh + "insecure = true\nlisten = 0.0.0.0\n", "set listen = fd00::1 or ::");
  expect_error(mesh + "listen = ::1\n", "b at fd00::2 cannot reach a, which listens on ::1 only");
  expect_error(mesh + "listen = ::\n", "insecure = true");
  EXPECT_EQ(error_of("node = a\nlisten = ::1\npeer = a@[::1]:7700\npeer = b@[::1]:7702\n"), "");
  expect_error("node = a\nlisten = ::1\npeer = a@[::1]:7700\npeer = b@[::1]:7701\n", "both use [::1]:7701");
  EXPECT_EQ(error_of("node = a\nlisten = ::\ninsecure = true\npeer = a@10.0.0.1:7700\n"), "");
}

TEST_F(NodeConfigTest, AnUnreachableAddressIsRefused) {
  expect_error("node = a\npeer = a@127.0.0.1:7700\npeer = b@10.0.0.2:7700\n", "b at 10.0.0.2 cannot reach a");
  expect_error("node = a\npeer = a@10.0.0.1:7700\npeer = b@10.0.0.2:7700\n", "set listen = 10.0.0.1 and a key-file");
  EXPECT_EQ(error_of("node = a\nlisten = 10.0.0.1\ninsecure = true\npeer = a@10.0.0.1:7700\npeer = b@10.0.0.2:7700\n"),
            "");
}

TEST_F(NodeConfigTest, MissingFileIsNamed) {
  const char* const argv[] = {"tgd", "--config", "/no/such.conf"};
  const auto line = parse_node_command_line(3, argv);
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.error().message.find("/no/such.conf: cannot be read: No such file"), std::string::npos);
}

TEST_F(NodeConfigTest, HelpNamesEveryOption) {
  const char* const argv[] = {"tgd", "--help"};
  const auto line = parse_node_command_line(2, argv);
  ASSERT_TRUE(line.ok());
  EXPECT_TRUE(line->help);
  for (const auto& option : node_options()) {
    EXPECT_NE(line->help_text.find("--" + option.name), std::string::npos) << option.name;
    EXPECT_GE(option.help.size(), 20u) << option.name;
  }
  std::istringstream lines(line->help_text);
  for (std::string text; std::getline(lines, text);) EXPECT_LE(text.size(), 80u) << text;
}

}  // namespace
}  // namespace tg::schema
