// Names and ports of every kind, on loopback.
#include "daemon/doctor/link_checks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <thread>
#include <vector>

namespace tg::tests {
namespace {

using schema::LinkFacts;
using schema::Reach;

// Listens on a port; `answer` is sent to the first that connects.
class Listener {
 public:
  explicit Listener(std::string answer) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(static_cast<std::uint16_t>(0));
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof own;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&own), bytes), 0);
    EXPECT_EQ(::listen(descriptor_, 4), 0);
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &bytes);
    port_ = ntohs(own.sin_port);
    if (answer.empty()) return;
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int taken = ::accept(descriptor_, nullptr, nullptr);
      if (taken < 0) return;
      EXPECT_EQ(::send(taken, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
      ::close(taken);
    });
  }
  ~Listener() {
    ::shutdown(descriptor_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(descriptor_);
  }
  std::uint16_t port() const { return port_; }

 private:
  const int descriptor_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// The port as a peer's mesh port; its control port is the one above, where nothing listens.
LinkFacts checked(const std::string& host, std::uint16_t port) {
  schema::NodeConfig config;
  config.node = "node-a";
  config.peers.push_back({"node-a", "127.0.0.1", 1});
  config.peers.push_back({"node-b", host, port});
  const auto progress = std::make_shared<daemon::ExaminationProgress>();
  daemon::check_links(config, std::chrono::steady_clock::now() + std::chrono::seconds(60), progress);
  for (int ms = 0; !progress->links_done() && ms < 120'000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const schema::Examination facts = progress->facts();
  EXPECT_EQ(facts.links.size(), 2u);
  if (facts.links.size() != 2) return {};
  EXPECT_EQ(facts.links[0].peer, "node-a");
  EXPECT_EQ(facts.links[1].line, host + ":" + std::to_string(port));
  return facts.links[1];
}

TEST(LinkChecks, EachPortIsCalledWhatItIs) {
  const Listener tgd(std::string("\xff\0\0", 3)), ssh("SSH-2.0-OpenSSH\r\n"), frozen("");
  std::uint16_t closed = 0;
  {
    const Listener gone("");
    closed = gone.port();
  }
  LinkFacts link = checked("127.0.0.1", tgd.port());
  EXPECT_STREQ(to_word(link.mesh), "ok");
  EXPECT_EQ(link.address, "127.0.0.1");
  EXPECT_EQ(link.device, "lo");
  EXPECT_GT(link.mtu, 1000u);
  EXPECT_STREQ(to_word(checked("127.0.0.1", ssh.port()).mesh), "stranger");
  EXPECT_STREQ(to_word(checked("127.0.0.1", frozen.port()).mesh), "stuck");
  EXPECT_STREQ(to_word(checked("127.0.0.1", closed).mesh), "refused");
}

TEST(LinkChecks, AnUnknownName) {
  const LinkFacts link = checked("nobody.invalid", 7700);
  EXPECT_NE(link.name_problem, "");
  EXPECT_EQ(link.address, "");
  EXPECT_STREQ(to_word(link.mesh), "untried");
}

}  // namespace
}  // namespace tg::tests
