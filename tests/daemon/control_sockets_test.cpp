// Clients of the control port that do not read, and revoked keys.
#include "daemon/control/control_sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "control_fixture.h"
#include "daemon/access/accepted_connections.h"
#include "daemon/access/connection.h"
#include "raw_client.h"
#include "schema/limits.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

class Port : public testing::Test {
 protected:
  void open(const std::string& key_file = "") {
    schema::NodeConfig config;
    config.node = "node-a";
    config.state_dir = directory_.path();
    config.key_file = key_file;
    for (int attempt = 0; attempt < 10 && !sockets_; ++attempt) {
      const std::uint16_t port = tests::free_ports(1).front();
      endpoint_ = "tcp://127.0.0.1:" + std::to_string(port);
      config.peers.clear();
      config.peers.push_back({"node-a", "127.0.0.1", static_cast<std::uint16_t>(port - 1)});
      config.nodes = schema::NodeList(config.peers);
      keyring_ = std::move(Keyring::open(config)).value();
      auto opened = ControlSockets::open(config, *keyring_, log_);
      if (opened) sockets_ = std::move(*opened);  // otherwise another process has the port
    }
    ASSERT_TRUE(sockets_);
  }
  // Receives what has arrived, and answers each message with that many bytes.
  void turn(std::size_t answer_bytes) {
    sockets_->wait(5);
    for (int i = 0; i < schema::kMaxMessagesPerTurn; ++i) {
      const std::optional<ClientMessage> message = sockets_->receive_client();
      if (!message) break;
      ++received_;
      (void)sockets_->send_client(message->identity, std::string(answer_bytes, 'x'));
      max_unread_ = std::max(max_unread_, sockets_->unread_bytes());
    }
    sockets_->tick();
  }

  // Clients that send requests and read nothing; a client that is cut returns.
  using Greedy = std::vector<std::unique_ptr<tests::RawClient>>;
  Greedy greedy_clients(std::size_t count) {
    Greedy clients(count);
    for (auto& one : clients) come(one);
    return clients;
  }
  void ask(Greedy& clients) {
    for (auto& one : clients)
      if (!one->send(std::string("\0\1x", 3))) come(one);
    turn(schema::kFileSliceBytes);
    turn(schema::kFileSliceBytes);
  }
  void come(std::unique_ptr<tests::RawClient>& client) {
    client = std::make_unique<tests::RawClient>(endpoint_, 2048);
    EXPECT_TRUE(client->let_in());
  }

  tests::TemporaryDirectory directory_;
  std::vector<std::string> lines_;
  Log log_{"node-a", LogLevel::kError};
  std::unique_ptr<Keyring> keyring_;
  std::unique_ptr<ControlSockets> sockets_;
  zmq::context_t clients_;
  std::string endpoint_;
  std::size_t received_ = 0, max_unread_ = 0;
};

// Many connections repeatedly request far more than twice the limit, and read nothing.
TEST_F(Port, UnreadBytesAreBoundedAndReadersAreAnswered) {
  open();
  constexpr std::size_t kClients = 100;
  static_assert(kClients * schema::kMaxUnreadBytes > 2 * schema::kMaxUnreadBytesPerPort);
  Greedy greedy = greedy_clients(kClients);
  EXPECT_TRUE(tests::eventually([&] {
    ask(greedy);
    return max_unread_ > schema::kMaxUnreadBytesPerPort / 2;
  })) << max_unread_;
  for (int more = 0; more < 20; ++more) ask(greedy);
  Connection honest = dial(clients_, {}, std::nullopt, endpoint_);
  zmq::message_t answer;
  EXPECT_TRUE(tests::eventually([&] {
    (void)honest.dealer.send(zmq::str_buffer("y"), zmq::send_flags::dontwait);
    turn(schema::kFileSliceBytes);
    return honest.dealer.recv(answer, zmq::recv_flags::dontwait).has_value();
  }));
  EXPECT_LE(max_unread_, schema::kMaxUnreadBytesPerPort);
}

// At the limit of unread bytes a client that reads gets every answer, the first one too, and so do heartbeats.
TEST_F(Port, AReaderIsAnsweredAtOnceAtTheLimitOfUnreadBytes) {
  open();
  Greedy greedy = greedy_clients(100);
  constexpr std::size_t kFull =
      schema::kMaxUnreadBytesPerPort - schema::kUnreadBytesForReaders - 2 * schema::kFileSliceBytes;
  ASSERT_TRUE(tests::eventually([&] { return ask(greedy), sockets_->unread_bytes() > kFull; }));
  Connection honest = dial(clients_, {}, std::nullopt, endpoint_);
  for (int question = 0; question < 8; ++question) {
    ASSERT_TRUE(tests::eventually([&] { return ask(greedy), sockets_->unread_bytes() > kFull; }));
    ASSERT_TRUE(tests::eventually(
        [&] { return honest.dealer.send(zmq::str_buffer("y"), zmq::send_flags::dontwait).has_value(); }));
    // Its request waits for its turn, and is answered then.
    ASSERT_TRUE(tests::eventually([&] {
      sockets_->wait(5);
      while (const std::optional<ClientMessage> message = sockets_->receive_client()) {
        const bool long_one = message->bytes != "y";
        const bool sent = sockets_->send_client(
            message->identity, std::string(long_one ? schema::kFileSliceBytes : schema::kShortAnswerBytes, 'x'));
        if (!long_one) return sent;
      }
      return false;
    })) << "question "
        << question << " got no answer with " << sockets_->unread_bytes() << " bytes unread";
    zmq::message_t answer;
    ASSERT_TRUE(tests::eventually([&] { return honest.dealer.recv(answer, zmq::recv_flags::dontwait).has_value(); }));
    EXPECT_LE(sockets_->unread_bytes(), schema::kMaxUnreadBytesPerPort);
  }
}

// A client that floods the local socket does not delay a peer's heartbeat.
TEST_F(Port, TheLocalSocketDoesNotStarveTheOther) {
  open();
  constexpr int kMaxBefore = 200;  // messages of the local socket before one of the other
  std::atomic<bool> done{false};
  std::thread crowd([&] {
    Connection local = dial(clients_, {}, std::nullopt, "ipc://" + directory_.path() + "/control.sock");
    while (!done)
      if (!local.dealer.send(zmq::str_buffer("x"), zmq::send_flags::dontwait)) std::this_thread::yield();
  });
  Connection remote = dial(clients_, {}, std::nullopt, endpoint_);
  const auto next = [&] {
    std::optional<ClientMessage> message;
    EXPECT_TRUE(tests::eventually([&] { return (message = sockets_->receive_client()).has_value(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the time for an answer
    return message ? message->bytes : "";
  };
  while (next() != "x") {
  }
  for (int beat = 0; beat < 5; ++beat) {
    ASSERT_TRUE(tests::eventually(
        [&] { return remote.dealer.send(zmq::str_buffer("beat"), zmq::send_flags::dontwait).has_value(); }));
    int before = 0;
    while (before <= kMaxBefore && next() != "beat") ++before;
    EXPECT_LE(before, kMaxBefore);
  }
  done = true;
  crowd.join();
}

// The descriptor of the connection accepted on that port.
int accepted_on(std::uint16_t port) {
  constexpr int kMaxDescriptors = 4096;
  for (int descriptor = 0; descriptor < kMaxDescriptors; ++descriptor) {
    sockaddr_in own{}, other{};
    socklen_t size = sizeof own;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0 || ntohs(own.sin_port) != port)
      continue;
    size = sizeof other;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &size) == 0) return descriptor;
  }
  return -1;
}

// With keys libzmq encrypts an answer in advance, into memory of its own, and releases ours.
TEST_F(Port, AnAnswerEncryptedInAdvanceCountsUntilItIsReceived) {
  const schema::Key cluster = schema::draw_cluster_key();
  const std::string path = directory_.path() + "/cluster.key";
  tests::write_text(path, schema::format_cluster(cluster));
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  open(path);
  Connection client =
      dial(clients_, {.received_messages = 1},
           Credentials{schema::member_keys(cluster), schema::control_keys(cluster).public_key}, endpoint_);
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)));
  constexpr std::uint64_t kAnswer = schema::kFileSliceBytes;
  int connection = -1;
  std::uint64_t held = 0, asked = 0, given_before = 0, received_before = 0, still = 0;
  ASSERT_TRUE(tests::eventually([&] {
    turn(kAnswer);
    if (connection < 0) {
      connection = accepted_on(port);
      const int bytes = 16 * 1024;  // as for a slow client: the kernel accepts a part of an answer
      return connection >= 0 && ::setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0;
    }
    const std::uint64_t given = AcceptedConnections::send_progress(connection)->written, answered = received_ * kAnswer;
    const std::size_t untaken = sockets_->unread_bytes();
    pollfd room{connection, POLLOUT, 0};
    const bool full = ::poll(&room, 1, 0) == 0;
    // An answer written in this turn may not be counted yet.
    const bool moved = given != given_before || received_ != received_before;
    given_before = given;
    received_before = received_;
    still = full && !moved ? still + 1 : 0;
    held = answered - std::min(answered, given);
    if (still >= 20 && held >= 2 * kAnswer) {  // libzmq has the rest of one, encrypted, and others behind it
      EXPECT_GE(untaken, held);
      return true;
    }
    if (received_ == asked && untaken < 4 * kAnswer)  // one at a time: more would have it cut
      asked += client.dealer.send(zmq::str_buffer("y"), zmq::send_flags::dontwait) ? 1 : 0;
    return false;
  })) << received_
      << " answers, " << held << " bytes held";
  zmq::message_t answer;
  std::size_t taken = 0;
  EXPECT_TRUE(tests::eventually([&] {
    turn(kAnswer);
    while (client.dealer.recv(answer, zmq::recv_flags::dontwait)) ++taken;
    return taken == received_ && sockets_->unread_bytes() == 0;
  })) << taken
      << " of " << received_ << " answers read, " << sockets_->unread_bytes() << " bytes unread";
}

// The bytes of a connection that libzmq has read from the kernel.
std::uint64_t taken_from_kernel(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  int unread = 0;
  EXPECT_EQ(::ioctl(descriptor, FIONREAD, &unread), 0);
  EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_bytes_received -
         std::min<std::uint64_t>(info.tcpi_bytes_received, static_cast<std::uint64_t>(unread));
}

// Four times as many as the port buffers for a connection, without a reader, and then one after the other.
TEST_F(Port, UnreadRequestsWaitAtTheirSender) {
  open();
  tests::RawClient client(endpoint_);
  ASSERT_TRUE(client.let_in());
  constexpr std::size_t kTaken = 8, kMore = 2;  // and those that libzmq is assembling
  constexpr std::uint64_t kRequest = schema::kMaxRequestBytes;
  const std::string head("\x02\0\0\0\0\0\1\0\0", 9);  // a message of 64 KiB
  static_assert(kRequest == 0x10000);
  std::thread sender([&] {
    for (std::size_t i = 0; i < 4 * kTaken; ++i) EXPECT_TRUE(client.send(head + std::string(kRequest, 'x')));
  });
  const int connection = accepted_on(static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1))));
  EXPECT_TRUE(tests::eventually([&] { return taken_from_kernel(connection) >= kTaken * kRequest; }));
  std::uint64_t read = 0;
  EXPECT_TRUE(tests::eventually([&] {
    EXPECT_LE(taken_from_kernel(connection), (read + kTaken + kMore) * kRequest);
    read += sockets_->receive_client() ? 1 : 0;
    return read == 4 * kTaken;
  })) << read;
  sender.join();
}

TEST_F(Port, AReplacedKeyIsIgnoredAndItsConnectionIsCut) {
  const schema::Key cluster = schema::draw_cluster_key();
  const schema::KeyPair alice = schema::draw_pair(), other = schema::draw_pair();
  const std::string path = directory_.path() + "/cluster.key";
  const auto write = [&](const schema::KeyPair& pair, schema::Rights rights) {
    tests::write_text(path + ".new",
                      schema::format_cluster(cluster) + schema::format_operator({"alice", rights, pair.public_key}));
    std::filesystem::permissions(path + ".new", std::filesystem::perms::owner_read);
    std::filesystem::rename(path + ".new", path);
  };
  write(alice, schema::Rights::kFull);
  open(path);
  Connection dialled = dial(clients_, {}, Credentials{alice, schema::control_keys(cluster).public_key}, endpoint_);
  dialled.dealer.send(zmq::str_buffer("y"), zmq::send_flags::none);
  std::optional<ClientMessage> message;
  const auto heard = [&] {
    sockets_->tick();
    return (message = sockets_->receive_client()).has_value();
  };
  ASSERT_TRUE(tests::eventually(heard));
  EXPECT_EQ(message->user, (User{User::Kind::kOperator, "alice", schema::Rights::kFull}));

  write(alice, schema::Rights::kRead);
  keyring_->refresh(log_);
  dialled.dealer.send(zmq::str_buffer("y"), zmq::send_flags::none);
  ASSERT_TRUE(tests::eventually(heard));
  EXPECT_EQ(message->user.rights, schema::Rights::kRead) << "on the same connection";

  while (next_event(dialled.monitor)) {
  }
  write(other, schema::Rights::kFull);
  keyring_->refresh(log_);
  (void)dialled.dealer.send(zmq::str_buffer("y"), zmq::send_flags::dontwait);
  EXPECT_TRUE(tests::eventually([&] {
    EXPECT_FALSE(heard());
    const std::optional<ConnectionEvent> event = next_event(dialled.monitor);
    return event && *event != ConnectionEvent::kConnected;
  })) << "the connection still stands";
  EXPECT_FALSE(sockets_->send_client(message->identity, "x"));
}

// A tgctl with the cluster key, and a node: both have keys derived from a cluster key that is removed.
TEST_F(Port, AKeyThatWasRotatedOutIsIgnored) {
  const schema::Key before = schema::draw_cluster_key(), after = schema::draw_cluster_key();
  const std::string path = directory_.path() + "/cluster.key";
  const auto write = [&](const std::string& text) {
    tests::write_text(path + ".new", text);
    std::filesystem::permissions(path + ".new", std::filesystem::perms::owner_read);
    std::filesystem::rename(path + ".new", path);
  };
  write(schema::format_cluster(after) + schema::format_cluster(before));
  open(path);
  const auto dial_as = [&](const schema::KeyPair& own) {
    return dial(clients_, {}, Credentials{own, schema::control_keys(after).public_key}, endpoint_);
  };
  Connection member = dial_as(schema::member_keys(before)), node = dial_as(schema::node_keys(before, "node-a"));
  Connection kept = dial_as(schema::member_keys(after));
  const auto is_heard = [&](Connection& one) {
    one.dealer.send(zmq::str_buffer("y"), zmq::send_flags::none);
    return tests::eventually([&] { return sockets_->tick(), sockets_->receive_client().has_value(); });
  };
  for (Connection* one : {&member, &node, &kept}) ASSERT_TRUE(is_heard(*one));
  write(schema::format_cluster(after));
  keyring_->refresh(log_);
  for (Connection* one : {&member, &node}) {
    (void)one->dealer.send(zmq::str_buffer("y"), zmq::send_flags::dontwait);
    EXPECT_TRUE(tests::eventually([&] {
      EXPECT_FALSE(sockets_->receive_client().has_value());
      sockets_->tick();
      return next_event(one->monitor) == ConnectionEvent::kKeyRefused;
    }));
  }
  EXPECT_TRUE(is_heard(kept));
}

}  // namespace
}  // namespace tg::daemon
