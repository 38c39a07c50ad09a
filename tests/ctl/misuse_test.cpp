// The real tgctl without a daemon: every misuse ends at once or within its deadline, with one clear line on stderr,
// nothing on stdout, and the right exit code.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "schema/limits.h"
#include "tests/ctl/tgctl_process.h"

namespace tg::ctl {
namespace {

// A bound socket that does not listen: no other program has its port, and connections to it are refused.
class ClosedPort {
 public:
  ClosedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    EXPECT_TRUE(bound);
    name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~ClosedPort() { ::close(socket_); }
  const std::string& name() const { return name_; }
  void listen() const { EXPECT_EQ(::listen(socket_, 8), 0); }

 private:
  int socket_;
  std::string name_;
};

bool catches_interrupt(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) & (1u << (SIGINT - 1))) != 0;
  }
  return false;
}

class MisuseTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  pid_t spawn(std::vector<std::string> arguments) const { return tgctl_.spawn(std::move(arguments)); }
  Outcome finish(pid_t child, const Elapsed& elapsed) const { return tgctl_.finish(child, elapsed); }
  Outcome run(std::vector<std::string> arguments) const { return tgctl_.run(std::move(arguments)); }

  void expect(const Outcome& outcome, int code, const std::string& part) const {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "more than a line: " << outcome.err;
  }

  const TgctlProcess tgctl_{"misuse_test"};
  const std::string& folder_ = tgctl_.folder();
  const ClosedPort port_;
  static constexpr double kDeadlineSeconds = schema::kControlReplyMs / 1000.0 + 2;  // and time for a loaded machine
};

TEST_F(MisuseTest, NoDaemonIsThreeWithinTheDeadline) {
  const Outcome status = run({"status", "--address", port_.name()});
  expect(status, 3, "no tgd answers at " + port_.name());
  EXPECT_LT(status.seconds, kDeadlineSeconds);
}

TEST_F(MisuseTest, AnotherProgramOnThePortIsThreeToo) {
  port_.listen();  // accepts connections, sends nothing
  const Outcome stop = run({"stop", "first", "--address", port_.name()});
  expect(stop, 3, "no tgd answers");
  EXPECT_NE(stop.err.find("within 3 s: the port accepts connections but sends nothing: a tgd that is stopped or hangs"),
            std::string::npos)
      << stop.err;
  EXPECT_LT(stop.seconds, kDeadlineSeconds);
}

TEST_F(MisuseTest, UnknownHostIsThree) {
  const Outcome list = run({"list", "--address", "no-such-host.invalid:7701"});
  expect(list, 3, "no-such-host.invalid");
  EXPECT_LT(list.seconds, kDeadlineSeconds);
}

TEST_F(MisuseTest, UsageErrorsAreTwo) {
  expect(run({"statsu"}), 2, "did you mean tgctl status?");
  expect(run({"status", "--jsno"}), 2, "did you mean --json?");
  expect(run({"stop"}), 2, "stop needs a RUN");
  expect(run({"fetch", "first"}), 2, "-o DIR");
  expect(run({"list", "--address", "nonsense"}), 2, "\"nonsense\" is not an address");
  expect(run({"list", "--address", "host:0"}), 2, "is not an address");
  expect(run({"list", "--address", "tcp://host:1"}), 2, "is not an address");
  for (const char* local : {"[fe80::1]:7701", "[fe80::1%eth0]:7701"})
    expect(run({"list", "--address", local}), 2, "is a link-local address");
  expect(run({"wait", "first", "--for", "done", "--address", port_.name()}), 2, "\"done\" is not a run state");
  EXPECT_EQ(run({}).code, 2);
}

TEST_F(MisuseTest, BadJobsAreTwoWhetherADaemonAnswersOrNot) {
  const std::string address = port_.name();
  expect(run({"start", folder_ + "/none.job", "--address", address}), 2, "none.job cannot be read: No such file");
  expect(run({"start", folder_, "--address", address}), 2, "cannot be read");
  expect(run({"start", file("a.job", "steps = 5\nglobal-batc = 2\n"), "--address", address}), 2,
         "a.job:2: unknown key \"global-batc\"; did you mean \"global-batch\"?");
  expect(run({"start", file("b.job", "steps = none\n"), "--address", address}), 2, "b.job:1: steps: \"none\"");
  expect(run({"start", file("c.job", "schedule = staircase\n"), "--address", address}), 2, "schedule-every");
  expect(run({"start", file("d.job", "steps = 5\n"), "--set", "stepz=3", "--address", address}), 2,
         "--set stepz=3: unknown key \"stepz\"; did you mean \"steps\"?");
  expect(run({"start",
              file("e.job", std::string("\x7f"
                                        "ELF\0\1\2",
                                        7)),
              "--address", address}),
         2, "e.job is no text: it takes lines of the form key = value");
}

TEST_F(MisuseTest, AnUnusedKeyIsNamed) {
  const Outcome start = run({"start", file("f.job", "steps = 5\nepochs = 2\n"), "--address", port_.name()});
  EXPECT_EQ(start.err.find("warning: " + folder_ + "/f.job:1: steps = 5 has no effect: "), 0u) << start.err;
}

TEST_F(MisuseTest, AResumeThatChangesThePastIsTwoWhetherADaemonAnswersOrNot) {
  const std::string address = port_.name();
  expect(run({"resume", "first", "--set", "seed=2", "--address", address}), 2,
         "--set seed cannot change: what the run has trained so far came from it. A resume may set steps, ");
  expect(run({"resume", "first", "--set", "stepz=2", "--address", address}), 2, "did you mean \"steps\"?");
  expect(run({"resume", "first", "--set", "steps=2000", "--address", address}), 3, "no tgd answers");
}

TEST_F(MisuseTest, AnInvalidRunIdIsFour) { expect(run({"status", "no/such"}), 4, "no run is named \"no/such\""); }

TEST_F(MisuseTest, TheNewestRunIsNotDeletedByThatName) {
  expect(run({"delete", "@last"}), 2, "delete does not take @last");
  expect(run({"stop", "@last", "--address", port_.name()}), 3, "no tgd answers");
  expect(run({"fetch", "@first", "-o", folder_}), 4, "no run is named \"@first\"");
}

TEST_F(MisuseTest, CtrlCIsOneHundredAndThirty) {
  const Elapsed elapsed;
  const pid_t child = spawn({"start", file("a.job", "steps = 5\n"), "--address", port_.name()});
  bool caught = false;  // before the handler is set, the signal ends the program
  while (!caught && elapsed.ms() < 5000) {
    caught = catches_interrupt(child);
    std::this_thread::yield();
  }
  ASSERT_TRUE(caught);
  ASSERT_EQ(kill(child, SIGINT), 0);
  const Outcome outcome = finish(child, elapsed);
  expect(outcome, 130, "may still begin: no tgd answers");
  EXPECT_LT(outcome.seconds, 8);
}

TEST_F(MisuseTest, HelpAndVersionNeedNoDaemon) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("Usage: tgctl"), std::string::npos);
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.find("tgctl "), 0u);
}

}  // namespace
}  // namespace tg::ctl
