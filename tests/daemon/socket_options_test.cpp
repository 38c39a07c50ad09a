#include "daemon/access/socket_options.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "control_fixture.h"
#include "daemon/access/name_watch.h"

namespace tg::daemon {
namespace {

TEST(SocketOptions, ADealerQueuesNothingWithoutAPeer) {
  zmq::context_t context{1};
  zmq::socket_t dealer{context, zmq::socket_type::dealer};
  set_socket_options(dealer, {});
  dealer.connect("tcp://127.0.0.1:" + std::to_string(tests::free_ports(1)[0]));
  EXPECT_FALSE(dealer.send(zmq::str_buffer("a beat"), zmq::send_flags::dontwait).has_value());
}

// A peer that is suspended for less than peer-timeout, with full buffers, keeps its connection.
TEST(SocketOptions, NoConnectionIsGivenUpBeforePeerTimeout) {
  zmq::context_t context{1};
  for (const int seconds : {1, 10, 60, 3600}) {
    zmq::socket_t dealer{context, zmq::socket_type::dealer};
    set_socket_options(dealer, {.give_up_ms = static_cast<std::uint64_t>(seconds) * 1000});
    EXPECT_EQ(dealer.get(zmq::sockopt::tcp_maxrt), std::max(seconds * 1000, kTcpGiveUpMs));
    const int probes = dealer.get(zmq::sockopt::tcp_keepalive_cnt);
    EXPECT_LE(probes, 127);
    EXPECT_GE(kKeepAliveIdle + probes * dealer.get(zmq::sockopt::tcp_keepalive_intvl), seconds);
  }
}

TEST(NameWatch, KnowsTheAddressesOfNames) {
  NameWatch watch({"localhost", "10.0.0.3", "nobody.invalid"});
  EXPECT_EQ(watch.next_address("10.0.0.3", ""), "10.0.0.3");
  EXPECT_EQ(watch.next_address("10.0.0.3", "10.0.0.3"), "10.0.0.3");
  EXPECT_TRUE(tests::eventually([&] {
    return watch.has_address("localhost", watch.next_address("localhost", "")) &&
           !watch.problem("nobody.invalid").empty();
  }));
  EXPECT_EQ(watch.next_address("nobody.invalid", ""), "");
  EXPECT_EQ(watch.problem("localhost") + watch.problem("10.0.0.3"), "");
}

TEST(SocketOptions, ARouterReportsAMissingPeer) {
  zmq::context_t context{1};
  zmq::socket_t router{context, zmq::socket_type::router};
  set_socket_options(router, {});
  router.bind("tcp://127.0.0.1:*");
  EXPECT_THROW((void)router.send(zmq::str_buffer("nobody"), zmq::send_flags::sndmore), zmq::error_t);
}

// A sender fills every queue and dies (with bytes unread, so that its connection is reset) while the receiver is busy
// for longer than any timer: the receiver must survive and read what arrived. With ZMTP heartbeats it does not.
TEST(SocketOptions, ASenderThatDiesUnderBackPressureDoesNoHarm) {
  const auto kBusy = std::chrono::milliseconds(2500);
  const std::string bytes(64 * 1024, 'x');
  zmq::context_t context{1};
  zmq::socket_t router{context, zmq::socket_type::router};
  set_socket_options(router, {.high_water_mark = 4});
  router.bind("tcp://127.0.0.1:*");
  router.set(zmq::sockopt::rcvtimeo, tests::kPatienceMs);

  std::optional<zmq::context_t> other{1};
  std::optional<zmq::socket_t> sender{std::in_place, *other, zmq::socket_type::dealer};
  set_socket_options(*sender, {.high_water_mark = 4});
  sender->connect(router.get(zmq::sockopt::last_endpoint));
  sender->set(zmq::sockopt::sndtimeo, tests::kPatienceMs);
  ASSERT_TRUE(sender->send(zmq::str_buffer("hello")).has_value());
  zmq::message_t identity, part;
  ASSERT_TRUE(router.recv(identity).has_value());
  ASSERT_TRUE(router.recv(part).has_value());
  // The queues are full when nothing moves for this long.
  router.set(zmq::sockopt::sndtimeo, 200);
  sender->set(zmq::sockopt::sndtimeo, 200);
  const std::string name = identity.to_string();
  while (router.send(zmq::buffer(name), zmq::send_flags::sndmore).has_value()) {
    ASSERT_TRUE(router.send(zmq::buffer(bytes)).has_value());
  }
  std::size_t sent = 0;
  while (sender->send(zmq::buffer(bytes)).has_value()) ++sent;
  sender.reset();
  other.reset();

  std::this_thread::sleep_for(kBusy);
  router.set(zmq::sockopt::rcvtimeo, 1000);
  std::size_t received = 0;
  while (router.recv(part).has_value()) {
    if (!part.more()) ++received;
  }
  EXPECT_GE(received, 4u);
  EXPECT_LE(received, sent);
}

TEST(SocketOptions, AddressesAsText) {
  EXPECT_TRUE(is_address_literal("10.0.0.1"));
  EXPECT_TRUE(is_address_literal("[::1]"));
  EXPECT_TRUE(is_address_literal("fe80::1"));
  EXPECT_FALSE(is_address_literal("node-a"));
  EXPECT_FALSE(is_address_literal("10.0.0.1.example.org"));
  EXPECT_EQ(host_and_port("node-a", 7701), "node-a:7701");
  EXPECT_EQ(host_and_port("::1", 7701), "[::1]:7701");
  EXPECT_EQ(host_and_port("[::1]", 7701), "[::1]:7701");
}

}  // namespace
}  // namespace tg::daemon
