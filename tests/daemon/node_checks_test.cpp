// A node's checks of this machine.
#include "daemon/doctor/node_checks.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "temporary_directory.h"

namespace tg::tests {
namespace {

schema::NodeConfig config_in(const std::string& directory) {
  schema::NodeConfig config;
  config.node = "node-a";
  config.peers.push_back({"node-a", "127.0.0.1", 7700});
  config.state_dir = directory;
  return config;
}

schema::Examination examined(const schema::NodeConfig& config, bool busy = false) {
  daemon::ExaminationProgress progress;
  daemon::check_node(config, 2, busy, progress);
  EXPECT_TRUE(progress.node_checks_done());
  EXPECT_EQ(progress.facts().unfinished, "");
  return progress.facts();
}

TEST(NodeChecks, AMachineWithoutProblems) {
  const TemporaryDirectory directory;
  const schema::Examination facts = examined(config_in(directory.path()));
  EXPECT_EQ(facts.disk_problem + facts.memory_problem + facts.key_problem, "");
  EXPECT_TRUE(facts.data.empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "the check leaves nothing behind";
}

TEST(NodeChecks, EveryProblemIsNoted) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path() + "/gone");
  config.key_file = directory.path() + "/no.key";
  config.data_dir = directory.path();
  config.memory_mib = 1;
  std::ofstream(directory.path() + "/train-images-idx3-ubyte") << "cut off";
  const schema::Examination facts = examined(config);
  EXPECT_NE(facts.disk_problem.find("cannot be read"), std::string::npos) << facts.disk_problem;
  EXPECT_NE(facts.key_problem.find("no.key"), std::string::npos) << facts.key_problem;
  EXPECT_NE(facts.memory_problem.find("memory-mib"), std::string::npos) << facts.memory_problem;
  ASSERT_EQ(facts.data.size(), 1u);
  EXPECT_EQ(facts.data[0].set, "mnist");
  EXPECT_NE(facts.data[0].problem, "");
}

TEST(NodeChecks, AFolderOfPicturesIsComparedByItsNames) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path());
  config.data_dir = directory.path() + "/letters";
  ASSERT_EQ(examined(config).data.size(), 1u);
  EXPECT_NE(examined(config).data[0].problem.find("is not a folder"), std::string::npos);
  for (const char* letter : {"a", "b"}) {
    const std::string folder = config.data_dir + "/train/" + letter;
    std::filesystem::create_directories(folder);
    for (const char* name : {"/1.png", "/2.png"}) std::ofstream(folder + name) << "not read";
  }
  const auto whole = examined(config).data;
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].set, "folder");
  EXPECT_EQ(whole[0].problem, "");
  std::filesystem::remove(config.data_dir + "/train/a/1.png");
  EXPECT_NE(examined(config).data[0].hash, whole[0].hash);
  std::filesystem::remove(config.data_dir + "/train/a/2.png");
  const std::string problem = examined(config).data[0].problem;
  EXPECT_NE(problem.find("train/a counts as a class but holds no .jpg"), std::string::npos) << problem;
  std::filesystem::remove_all(config.data_dir + "/train");
  EXPECT_TRUE(examined(config).data.empty());
}

TEST(NodeChecks, TooFewThreads) {
  EXPECT_EQ(daemon::thread_problem(4), "");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs address space of its own";
#else
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 1;  // no room for another stack
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  const std::string problem = daemon::thread_problem(256);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(problem.find(" of 256 threads can be started"), std::string::npos) << problem;
  EXPECT_NE(problem.find("; stop other programs, or raise TasksMax="), std::string::npos) << problem;
#endif
}

TEST(NodeChecks, ABusyNodeIsNotDisturbed) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path());
  config.memory_mib = 1;  // the memory of a run is no finding
  EXPECT_EQ(examined(config, true).memory_problem, "");
}

}  // namespace
}  // namespace tg::tests
