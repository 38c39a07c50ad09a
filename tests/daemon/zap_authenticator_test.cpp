// Authentication of connections: real sockets on loopback, and handlers that die.
#include "daemon/access/zap_authenticator.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "daemon/access/accepted_connections.h"
#include "daemon/access/connection.h"
#include "daemon/access/networks.h"
#include "tests/daemon/control_fixture.h"
#include "tests/daemon/raw_client.h"
#include "tests/daemon/temporary_directory.h"

namespace tg::daemon {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kNever{
    1500};  // a message that has not arrived by then was refused; a refusal takes a few milliseconds

schema::NodeConfig node_a(const std::string& key_file = "") {
  schema::NodeConfig config;
  config.node = "node-a";
  config.peers.push_back({"node-a", "127.0.0.1", 7700});
  config.peers.push_back({"node-b", "127.0.0.1", 7702});
  config.nodes = schema::NodeList(config.peers);
  config.key_file = key_file;
  return config;
}

// A secured ROUTER on a port of its own.
class Door : public testing::Test {
 protected:
  void open(const std::string& cluster_file = "") {
    std::string path;
    if (!cluster_file.empty()) {
      path = directory_.path() + "/cluster.key";
      tests::write_text(path, cluster_file);
      std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    }
    keyring_ = std::move(Keyring::open(node_a(path))).value();
    authenticator_ = std::make_unique<ZapAuthenticator>(context_, "mesh", *keyring_, Networks({}), log_);
    authenticator_->start();
    authenticator_->secure(router_, keyring_->has_keys() ? keyring_->own_keys(0) : schema::KeyPair());
    router_.set(zmq::sockopt::linger, 0);
    router_.bind("tcp://127.0.0.1:*");
    endpoint_ = router_.get(zmq::sockopt::last_endpoint);
  }
  // Sends one message over a new connection: the user that it was accepted as, if it was.
  std::optional<std::string> knock(const std::optional<Credentials>& credentials, milliseconds patience) {
    Connection dialled = dial(clients_, {}, credentials, endpoint_);
    dialled.dealer.set(zmq::sockopt::sndtimeo, static_cast<int>(patience.count()));
    dialled.dealer.send(zmq::str_buffer("hello"), zmq::send_flags::none);
    router_.set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
    zmq::message_t id, body;
    if (!router_.recv(id) || !router_.recv(body)) return std::nullopt;
    const std::optional<User> user = keyring_->find_user(body.gets("User-Id"));
    return user ? std::optional(format_user(*user)) : std::nullopt;
  }
  Credentials as(const schema::KeyPair& own) { return {own, keyring_->own_keys(0).public_key}; }

  tests::TemporaryDirectory directory_;
  Log log_{"node-a", LogLevel::kError};
  zmq::context_t context_, clients_;
  std::unique_ptr<Keyring> keyring_;
  zmq::socket_t router_{context_, zmq::socket_type::router};
  std::unique_ptr<ZapAuthenticator> authenticator_;
  std::string endpoint_;
};

const schema::Key kCluster = schema::draw_cluster_key();

TEST_F(Door, KnowsNodesAndOperatorsByTheirKeys) {
  const schema::KeyPair alice = schema::draw_pair();
  open(schema::format_cluster(kCluster) + schema::format_operator({"alice", schema::Rights::kRead, alice.public_key}));
  EXPECT_EQ(knock(as(schema::node_keys(kCluster, "node-b")), milliseconds(5000)), "node node-b");
  EXPECT_EQ(knock(as(schema::member_keys(kCluster)), milliseconds(5000)), "member");
  EXPECT_EQ(knock(as(alice), milliseconds(5000)), "operator alice read");
  EXPECT_EQ(authenticator_->refused(), 0u);
}

TEST_F(Door, RefusesUnknownKeysUnlistedNodesAndClientsWithoutKeys) {
  open(schema::format_cluster(kCluster));
  EXPECT_EQ(knock(as(schema::draw_pair()), kNever), std::nullopt);
  EXPECT_EQ(knock(as(schema::node_keys(kCluster, "node-z")), kNever), std::nullopt);
  EXPECT_EQ(knock(as(schema::node_keys(schema::draw_cluster_key(), "node-b")), kNever), std::nullopt);
  EXPECT_GE(authenticator_->refused(), 3u);
  EXPECT_EQ(knock(std::nullopt, kNever), std::nullopt);  // fails before the ZAP request
}

// Without ZMQ_ZAP_ENFORCE_DOMAIN libzmq would accept both.
TEST_F(Door, RefusesAllOnceTheHandlerHasDied) {
  open(schema::format_cluster(kCluster));
  EXPECT_EQ(knock(as(schema::node_keys(kCluster, "node-b")), milliseconds(5000)), "node node-b");
  authenticator_.reset();
  EXPECT_EQ(knock(as(schema::node_keys(kCluster, "node-b")), kNever), std::nullopt);
  EXPECT_EQ(knock(as(schema::draw_pair()), kNever), std::nullopt);
}

TEST_F(Door, WithoutKeysLoopbackIsAccepted) {
  open();
  EXPECT_EQ(knock(std::nullopt, milliseconds(5000)), "anonymous");
  authenticator_.reset();
  EXPECT_EQ(knock(std::nullopt, kNever), std::nullopt);
}

TEST_F(Door, AChangedKeyFileIsReadAgainAndABadOneIsIgnored) {
  open(schema::format_cluster(kCluster));
  const schema::KeyPair alice = schema::draw_pair();
  const std::string path = directory_.path() + "/cluster.key";
  const auto replace = [&](const std::string& text) {
    tests::write_text(path + ".new", text);
    std::filesystem::permissions(path + ".new", std::filesystem::perms::owner_read);
    std::filesystem::rename(path + ".new", path);
    keyring_->refresh(log_);
  };
  replace("nonsense\n");
  EXPECT_EQ(knock(as(schema::node_keys(kCluster, "node-b")), milliseconds(5000)), "node node-b");
  EXPECT_EQ(knock(as(alice), kNever), std::nullopt);
  replace(schema::format_cluster(kCluster) +
          schema::format_operator({"alice", schema::Rights::kFull, alice.public_key}));
  EXPECT_EQ(knock(as(alice), milliseconds(5000)), "operator alice full");
}

TEST_F(Door, AnIdentityHasItsCurrentRights) {
  const schema::KeyPair alice = schema::draw_pair(), other = schema::draw_pair();
  const auto file = [](schema::Rights rights, const schema::KeyPair& pair) {
    return schema::format_cluster(kCluster) + schema::format_operator({"alice", rights, pair.public_key});
  };
  open(file(schema::Rights::kFull, alice));
  const std::string identity = Keyring::identity_of(alice.public_key), path = directory_.path() + "/cluster.key";
  const auto replace = [&](const std::string& text) {
    tests::write_text(path + ".new", text);
    std::filesystem::permissions(path + ".new", std::filesystem::perms::owner_read);
    std::filesystem::rename(path + ".new", path);
    keyring_->refresh(log_);
  };
  EXPECT_EQ(keyring_->find_user(identity)->rights, schema::Rights::kFull);
  replace(file(schema::Rights::kRead, alice));
  EXPECT_EQ(keyring_->find_user(identity)->rights, schema::Rights::kRead);
  replace(file(schema::Rights::kFull, other));
  EXPECT_FALSE(keyring_->find_user(identity).has_value()) << "another pair is another user, whatever its name";
  for (const char* odd : {"", "anonymous", "member", "operator alice full"})
    EXPECT_FALSE(keyring_->find_user(odd).has_value()) << odd;
}

TEST(Networks, ContainWhatTheyName) {
  Networks networks({"10.0.0.0/8", "192.168.1.7", "fd00::/8", "[2001:db8::1]"});
  for (const char* in : {"10.1.2.3", "192.168.1.7", "::ffff:10.1.2.3", "fd12::1", "2001:db8::1", "127.0.0.1", "::1"})
    EXPECT_TRUE(networks.contains(in)) << in;
  for (const char* out : {"11.0.0.1", "192.168.1.8", "fe80::1", "2001:db8::2", "", "localhost", "::ffff:11.0.0.1"})
    EXPECT_FALSE(networks.contains(out)) << out;
}

TEST(Networks, NamesAreResolved) {
  Networks networks({"localhost", "no-such-host.invalid"});
  EXPECT_TRUE(networks.contains("127.0.0.1"));
  EXPECT_FALSE(networks.contains("10.0.0.1"));
}

TEST(Networks, InvalidTextsAreRejected) {
  for (const char* odd : {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0", "fd00::/129", "a/8", "10.0.0.0/8x"})
    EXPECT_FALSE(parse_network(odd).has_value()) << odd;
}

// A port that closes every connection at once.
class ShutPort {
 public:
  ShutPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] {
      for (int one = 0; (one = ::accept(socket_, nullptr, nullptr)) >= 0; ++ended_) ::close(one);
    });
  }
  ~ShutPort() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  const std::string& endpoint() const { return endpoint_; }
  int ended() const { return ended_; }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string endpoint_;
  std::atomic<int> ended_{0};
  std::thread thread_;
};

// The events of a connection that is being replaced have no reader.
TEST(Connection, AReplacedOneDoesNotBlockOthers) {
  zmq::context_t context, others;
  const ShutPort shut;
  const SocketOptions options;
  Connection one;
  for (int i = 0; i < 1000; ++i) {
    one = dial(context, options, std::nullopt, shut.endpoint());
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i));
  }
  const int before = shut.ended();
  EXPECT_TRUE(tests::eventually([&] { return shut.ended() > before; }));

  zmq::socket_t open(others, zmq::socket_type::router);
  open.set(zmq::sockopt::linger, 0);
  open.bind("tcp://127.0.0.1:*");
  one = dial(context, options, std::nullopt, open.get(zmq::sockopt::last_endpoint));
  zmq::message_t id;
  EXPECT_TRUE(tests::eventually(
      [&] { return one.dealer.send(zmq::buffer("word", 4), zmq::send_flags::dontwait).has_value(); }));
  EXPECT_TRUE(tests::eventually([&] { return open.recv(id, zmq::recv_flags::dontwait).has_value(); }));
}

// A ROUTER whose connections are watched.
class Watched : public testing::Test {
 protected:
  void open(ConnectionLimits limits) {
    router_.set(zmq::sockopt::linger, 0);
    log_.set_sink([this](std::string_view line) { cut_.emplace_back(line); });
    connections_ = std::make_unique<AcceptedConnections>(context_, router_, limits, "mesh", log_);
    router_.bind("tcp://127.0.0.1:*");
    endpoint_ = router_.get(zmq::sockopt::last_endpoint);
  }
  // Receives whole messages as an owner does, and enforces the limits.
  bool eventually(const std::function<bool()>& condition) {
    return tests::eventually([&] {
      connections_->process_events();
      zmq::message_t id, body;
      while (router_.recv(id, zmq::recv_flags::dontwait)) {
        while (router_.get(zmq::sockopt::rcvmore)) (void)router_.recv(body);
        connections_->on_message(AcceptedConnections::descriptor(body));
        ++messages_;
      }
      connections_->tick(AcceptedConnections::Clock::now());
      return condition();
    });
  }
  zmq::socket_t client() {
    zmq::socket_t socket(clients_, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(endpoint_);
    return socket;
  }

  zmq::context_t context_, clients_;
  zmq::socket_t router_{context_, zmq::socket_type::router};
  std::vector<std::string> cut_;
  Log log_{"node-a", LogLevel::kInfo};
  std::unique_ptr<AcceptedConnections> connections_;
  int messages_ = 0;
  std::string endpoint_;
};

constexpr std::uint64_t kMessage = 64 * 1024;

using tests::RawClient;

TEST_F(Watched, OnlyAnEndlessMessageIsCut) {
  open({16, std::chrono::minutes(10), kMessage});
  zmq::socket_t honest = client();
  RawClient hostile(endpoint_);
  for (int i = 0; i < 20; ++i) honest.send(zmq::message_t(kMessage), zmq::send_flags::none);
  ASSERT_TRUE(eventually([&] { return messages_ == 20; }));
  std::string parts;  // empty parts, with more to come
  for (int i = 0; i < 4096; ++i) parts += std::string("\x01\0", 2);
  ASSERT_TRUE(eventually([&] { return !hostile.send(parts) || !cut_.empty(); }));
  ASSERT_TRUE(eventually([&] { return !cut_.empty(); }));
  EXPECT_NE(cut_[0].find("127.0.0.1:"), std::string::npos) << cut_[0];
  EXPECT_NE(cut_[0].find("without the end of a message"), std::string::npos) << cut_[0];
  for (int i = 0; i < 20; ++i) honest.send(zmq::message_t(kMessage), zmq::send_flags::none);
  EXPECT_TRUE(eventually([&] { return messages_ == 40; }));
  EXPECT_EQ(cut_.size(), 1u);
}

TEST_F(Watched, ASilentConnectionIsCut) {
  open({16, milliseconds(300), kMessage});
  const zmq::socket_t silent = client();
  ASSERT_TRUE(eventually([&] { return !cut_.empty(); }));
  EXPECT_NE(cut_[0].find("no message for"), std::string::npos) << cut_[0];
}

TEST_F(Watched, OneConnectionTooManyIsCut) {
  open({2, std::chrono::minutes(10), kMessage});
  const zmq::socket_t first = client(), second = client();
  ASSERT_TRUE(eventually([&] { return connections_->size() == 2; }));
  const zmq::socket_t third = client();
  ASSERT_TRUE(eventually([&] { return !cut_.empty(); }));
  EXPECT_NE(cut_[0].find("more than 2 connections"), std::string::npos) << cut_[0];
  EXPECT_EQ(connections_->size(), 2u);
}

TEST_F(Watched, NewConnectionsMakeRoomAndKnownOnesStay) {
  open({3, std::chrono::minutes(10), kMessage});
  zmq::socket_t honest = client();
  honest.send(zmq::message_t(1), zmq::send_flags::none);
  ASSERT_TRUE(eventually([&] { return messages_ == 1; }));
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(std::make_unique<RawClient>(endpoint_));
    ASSERT_TRUE(eventually([&] { return connections_->size() == std::min(strangers.size() + 1, std::size_t{3}); }));
  }
  // A further connection is accepted too, and the log has one line about all the cut ones.
  zmq::socket_t late = client();
  late.send(zmq::message_t(1), zmq::send_flags::none);
  honest.send(zmq::message_t(1), zmq::send_flags::none);
  EXPECT_TRUE(eventually([&] { return messages_ == 3; }));
  EXPECT_EQ(cut_.size(), 1u);
}

TEST_F(Watched, AClosedConnectionIsForgotten) {
  open({16, std::chrono::minutes(10), kMessage});
  zmq::socket_t gone = client();
  ASSERT_TRUE(eventually([&] { return connections_->size() == 1; }));
  gone.close();
  EXPECT_TRUE(eventually([&] { return connections_->size() == 0; }));
  EXPECT_TRUE(cut_.empty());
}

}  // namespace
}  // namespace tg::daemon
