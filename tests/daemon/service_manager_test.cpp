// Notifications to systemd, received on a datagram socket in the place of its own.
#include "daemon/node/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "temporary_directory.h"

namespace tg::daemon {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  void SetUp() override { listen("@tgd-test-" + std::to_string(::getpid())); }
  void TearDown() override { ::close(socket_); }

  void listen(const std::string& name) {
    if (socket_ >= 0) ::close(socket_);
    name_ = name;
    sockaddr_un own{};
    own.sun_family = AF_UNIX;
    name.copy(own.sun_path, sizeof own.sun_path);
    if (name.front() == '@') own.sun_path[0] = '\0';
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&own), length), 0) << name;
  }
  std::vector<std::string> heard() {
    std::vector<std::string> all;
    char bytes[256];
    for (ssize_t got = 0; (got = ::recv(socket_, bytes, sizeof bytes, 0)) >= 0;)
      all.emplace_back(bytes, static_cast<std::size_t>(got));
    return all;
  }
  static std::string idle() { return "idle"; }

  std::string name_;
  int socket_ = -1;
};

using Words = std::vector<std::string>;

TEST_F(ServiceManagerTest, IsNotifiedOfReadinessAndStopping) {
  const tests::TemporaryDirectory directory;
  for (const std::string& name : {name_ + "-abstract", directory.path() + "/notify"}) {
    listen(name);
    ServiceManager manager(name.c_str(), nullptr, nullptr);
    manager.notify_ready();
    manager.notify_stopping();
    EXPECT_EQ(heard(), (Words{"READY=1", "STOPPING=1"})) << name;
  }
}

TEST_F(ServiceManagerTest, AChangedStatusIsSentOnceASecond) {
  ServiceManager manager(name_.c_str(), nullptr, nullptr);
  int asked = 0;
  const auto tick = [&](std::uint64_t now_ms, const std::string& status) {
    manager.tick(now_ms, now_ms, [&] {
      ++asked;
      return status;
    });
  };
  tick(10'000, "idle");
  tick(10'999, "busy");
  tick(11'000, "idle");
  tick(12'000, "step 1");
  EXPECT_EQ(heard(), (Words{"STATUS=idle", "STATUS=step 1"}));
  EXPECT_EQ(asked, 3);
}

TEST_F(ServiceManagerTest, WatchdogIsFedFourTimesInItsIntervalWhileTheOtherThreadsRun) {
  ServiceManager manager(name_.c_str(), "4000000", std::to_string(::getpid()).c_str());
  manager.tick(10'000, 1, idle);
  manager.tick(10'999, 2, idle);
  EXPECT_EQ(heard(), (Words{"WATCHDOG=1", "STATUS=idle"}));
  manager.tick(11'000, 2, idle);
  EXPECT_EQ(heard(), Words{"WATCHDOG=1"});
  manager.tick(12'000, 2, idle);
  manager.tick(60'000, 2, idle);
  EXPECT_EQ(heard(), Words{}) << "the other threads stand still";
  manager.tick(60'001, 3, idle);
  EXPECT_EQ(heard(), Words{"WATCHDOG=1"});
}

TEST_F(ServiceManagerTest, TheWatchdogOfAnotherProcessIsIgnored) {
  ServiceManager manager(name_.c_str(), "4000000", "1");
  manager.tick(10'000, 1, idle);
  EXPECT_EQ(heard(), Words{"STATUS=idle"});
}

TEST_F(ServiceManagerTest, WithoutSystemdNothingHappens) {
  const std::string longer_than_any = "/" + std::string(200, 'x');
  const char* const none = nullptr;
  for (const char* name : {none, "", "relative", "vsock:2:1", longer_than_any.c_str(), "/no/such/socket"}) {
    ServiceManager manager(name, "1000000", "junk");
    manager.notify_ready();
    manager.tick(10'000, 1, idle);
    manager.notify_stopping();
  }
  EXPECT_EQ(heard(), Words{});
}

}  // namespace
}  // namespace tg::daemon
