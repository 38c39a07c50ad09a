// Runs the real tgctl in a folder of its own and collects its output. One thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/elapsed.h"

namespace tg::ctl {

struct Outcome {
  int code = -1;
  std::string out, err;
  double seconds = 0;          // without the time in which the machine was overloaded
  std::size_t most_bytes = 0;  // its peak memory; 0: it stayed below this process's, which it begins with
};

class TgctlProcess {
 public:
  explicit TgctlProcess(const std::string& name) : folder_(testing::TempDir() + name + "." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~TgctlProcess() { std::filesystem::remove_all(folder_); }
  TgctlProcess(const TgctlProcess&) = delete;
  TgctlProcess& operator=(const TgctlProcess&) = delete;

  const std::string& folder() const { return folder_; }

  pid_t spawn(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), TGCTL_PATH);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ + "/out").c_str(), kFlags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ + "/err").c_str(), kFlags, 0600);
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, TGCTL_PATH, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  Outcome finish(pid_t child, const Elapsed& elapsed) const {
    Outcome outcome;
    int status = 0;
    rusage used{}, own{};
    EXPECT_EQ(wait4(child, &status, 0, &used), child);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &own), 0);
    if (used.ru_maxrss > own.ru_maxrss) outcome.most_bytes = static_cast<std::size_t>(used.ru_maxrss) * 1024;
    outcome.seconds = static_cast<double>(elapsed.ms()) / 1000;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    outcome.out = read("out");
    outcome.err = read("err");
    return outcome;
  }

  Outcome run(std::vector<std::string> arguments) const {
    const Elapsed elapsed;
    return finish(spawn(std::move(arguments)), elapsed);
  }

 private:
  std::string read(const std::string& name) const {
    std::ifstream text(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(text), std::istreambuf_iterator<char>()};
  }

  const std::string folder_;
};

}  // namespace tg::ctl
