// Hostile input: the control port counts it, logs it at a bounded rate, and keeps working.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "control_fixture.h"
#include "schema/limits.h"

namespace tg::tests {
namespace {

using schema::VersionReply;
using schema::VersionRequest;

class ControlHostile : public ControlMesh {
 protected:
  void SetUp() override { start_mesh(10'000, {true, true, true}); }
  void expect_alive() { ask<VersionReply>(kA, VersionRequest{}); }
  std::size_t complaints() {
    const auto lines = node(kA).log_lines();
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("event=bad-control-message") != std::string::npos;
    }));
  }
};

TEST_F(ControlHostile, RawBytesOnThePort) {
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(control_port(kA));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::mt19937 random(seed);
    std::string bytes = seed == 0 ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n" : "";
    while (seed > 0 && bytes.size() < 4096) bytes += static_cast<char>(random());
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
  expect_alive();
}

TEST_F(ControlHostile, AMalformedRequestIsAnsweredAndLogged) {
  TestClient client(control_port(kA));
  client.send_bytes({"nonsense"});
  const Error error = client.receive_reply<Error>(0);
  EXPECT_EQ(error.kind, ErrorKind::kCorrupt);
  EXPECT_NE(error.message.find("node-a"), std::string::npos) << error.message;
  ASSERT_EQ(complaints(), 1u);
  EXPECT_NE(node(kA).log_lines()[0].find("from=127.0.0.1"), std::string::npos) << node(kA).log_lines()[0];
}

TEST_F(ControlHostile, EveryCutAndManyFlipsOfEveryRequest) {
  const std::vector<schema::RequestBody> bodies = {
      schema::StatusRequest{"run-1", false},
      schema::StartRequest{"model = lenet\n", "run-1", false},
      schema::ResumeRequest{"run-1", "steps = 9\n", false, 600, true},
      schema::StopRequest{"run-1"},
      schema::LogsRequest{"run-1", "node-b", 5},
      schema::FetchRequest{"run-1", "node-c", "run.json", 0},
      VersionRequest{},
      schema::Heartbeat{"node-b", 1, "run-1", schema::Phase::kForward, 3, 4}};
  std::mt19937 random(20171204);
  for (const schema::RequestBody& body : bodies) {
    TestClient client(control_port(kA));
    // Whether or not that is answered, the next request must be.
    const auto send_and_go_on = [&](const std::string& bytes) {
      client.send_bytes({bytes});
      client.ask<VersionReply>(VersionRequest{});
    };
    const std::string good = schema::encode_request({7, body});
    for (std::size_t length = 0; length < good.size(); length += 3) send_and_go_on(good.substr(0, length));
    for (int i = 0; i < 100; ++i) {
      std::string damaged = good;
      damaged[random() % damaged.size()] = static_cast<char>(random());
      send_and_go_on(damaged);
    }
  }
  expect_alive();
  EXPECT_GE(complaints(), 1u);
}

TEST_F(ControlHostile, WarningsAreRateLimited) {
  TestClient client(control_port(kA));
  const std::uint64_t begin_ms = now_ms();
  for (int i = 0; i < 300; ++i) {
    client.send_bytes({"nonsense"});
    ASSERT_TRUE(client.receive().has_value());
  }
  const std::uint64_t seconds = (now_ms() - begin_ms) / 1000;
  EXPECT_GE(complaints(), 1u);
  EXPECT_LE(complaints(), seconds + 2);
}

TEST_F(ControlHostile, MessagesOfOtherShapes) {
  TestClient client(control_port(kA));
  client.send_bytes({"", schema::encode_request({1, VersionRequest{}})});  // as a REQ socket sends
  client.send_bytes(std::vector<std::string>(1000, "part"));
  client.send_bytes({""});
  client.send({2, VersionRequest{}});
  client.receive_reply<Error>(0);  // the reply to the empty one
  client.receive_reply<VersionReply>(2);
  TestClient oversized(control_port(kA));
  oversized.send_bytes({std::string(schema::kMaxControlBytes + 1, 'x')});
  expect_alive();
}

TEST_F(ControlHostile, HeartbeatsOfUnknownNodesDoNotCount) {
  start_mesh(10'000, {true, false, false});
  TestClient client(control_port(kA));
  client.send({1, schema::Heartbeat{"node-x", 1, "", schema::Phase::kIdle, 0, 0}});
  client.send({2, schema::Heartbeat{"node-a", 1, "", schema::Phase::kIdle, 0, 0}});
  client.ask<VersionReply>(VersionRequest{});
  EXPECT_EQ(states(kA), "up unreachable unreachable");
  ASSERT_EQ(complaints(), 1u);
  EXPECT_NE(node(kA).log_lines()[0].find("node-x"), std::string::npos) << node(kA).log_lines()[0];
  client.send({3, schema::Heartbeat{"node-b", 1, "", schema::Phase::kIdle, 0, 0}});
  client.ask<VersionReply>(VersionRequest{});
  EXPECT_EQ(states(kA), "up no link unreachable") << "it beats, and its own port cannot be reached";
}

TEST_F(ControlHostile, AFloodDoesNotStopHeartbeats) {
  constexpr std::uint64_t kPeerTimeoutMs = 600;
  start_mesh(kPeerTimeoutMs);
  wait_until_connected();
  TestClient flood(control_port(kA));
  const std::string noise = schema::encode_request({1, schema::StatusRequest{"", true}});
  std::size_t answered = 0;
  for (const std::uint64_t end_ms = now_ms() + 3 * kPeerTimeoutMs; now_ms() < end_ms;) {
    flood.send_bytes({noise});
    if (flood.receive(0)) ++answered;
  }
  EXPECT_EQ(states(kB), "up up up") << "a was heard while it answered " << answered;
  EXPECT_GT(answered, 0u);
}

}  // namespace
}  // namespace tg::tests
