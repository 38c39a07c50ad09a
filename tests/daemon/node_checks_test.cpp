// What a node finds out about this machine, as it is.
#include "daemon/doctor/node_checks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/host_memory_space.h"
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

const engine::ComputeDevice& processor() {
  static kernels::HostMemorySpace space(*kernels::available().back());
  static const engine::ComputeDevice device(space);
  return device;
}

TEST(HostChecks, TheEngineGivesTheKnownGradient) {
  const Result<std::string> tested = daemon::test_engine(processor());
  ASSERT_TRUE(tested.ok()) << tested.error().message;
  EXPECT_NE(tested->find("scalar"), std::string::npos) << *tested;
}

TEST(HostChecks, ThisMachineIsWell) {
  const TemporaryDirectory directory;
  daemon::Report report;
  daemon::check_node(config_in(directory.path()), processor(), 1, false, report);
  report.links_done();
  EXPECT_TRUE(report.done());
  const schema::Examination facts = report.facts();
  EXPECT_EQ(facts.unfinished, "");
  EXPECT_EQ(facts.disk_problem + facts.memory_problem + facts.engine_problem + facts.key_problem + facts.configuration,
            "");
  EXPECT_GT(facts.disk_free, 0u);
  EXPECT_GT(facts.disk_need, 10u << 20);
  EXPECT_GT(facts.memory_need, 10u << 20);
  EXPECT_GE(facts.descriptors, facts.descriptors_open);
  EXPECT_FALSE(facts.engine.empty());
  EXPECT_TRUE(facts.data.empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "the check leaves nothing behind";
}

TEST(HostChecks, WhatIsWrongIsNoted) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path() + "/gone");
  config.key_file = directory.path() + "/no.key";
  config.data_dir = directory.path();
  config.memory_mib = 1;
  std::ofstream(directory.path() + "/train-images-idx3-ubyte") << "cut off";
  daemon::Report report;
  daemon::check_node(config, processor(), 1, false, report);
  const schema::Examination facts = report.facts();
  EXPECT_NE(facts.disk_problem.find("cannot be looked at"), std::string::npos) << facts.disk_problem;
  EXPECT_NE(facts.key_problem.find("no.key"), std::string::npos) << facts.key_problem;
  EXPECT_NE(facts.memory_problem.find("memory-mib"), std::string::npos) << facts.memory_problem;
  ASSERT_EQ(facts.data.size(), 1u);
  EXPECT_EQ(facts.data[0].set, "mnist");
  EXPECT_NE(facts.data[0].problem, "");
}

TEST(HostChecks, AFolderOfPicturesIsSeen) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path());
  config.data_dir = directory.path() + "/letters";
  const auto look = [&] {
    daemon::Report report;
    daemon::check_node(config, processor(), 1, false, report);
    return report.facts().data;
  };
  for (const char* part : {"train", "test"})
    for (const char* letter : {"a", "b"}) {
      const std::string folder = config.data_dir + "/" + part + "/" + letter;
      std::filesystem::create_directories(folder);
      for (const char* name : {"/1.png", "/2.png"}) std::ofstream(folder + name) << "not read";
    }
  const auto whole = look();
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].set, "folder");
  EXPECT_EQ(whole[0].problem, "");
  EXPECT_EQ(whole[0].seen, "2 classes, 4 + 4 pictures");
  std::filesystem::remove(config.data_dir + "/train/a/1.png");
  const auto short_of_one = look();
  ASSERT_EQ(short_of_one.size(), 1u);
  EXPECT_EQ(short_of_one[0].seen, "2 classes, 3 + 4 pictures");
  EXPECT_NE(short_of_one[0].hash, whole[0].hash);
  std::filesystem::remove(config.data_dir + "/train/a/2.png");
  ASSERT_EQ(look().size(), 1u);
  EXPECT_NE(look()[0].problem.find("train/a counts as a class but holds no .jpg"), std::string::npos)
      << look()[0].problem;
  std::ofstream(config.data_dir + "/train/a/2.png") << "not read";
  std::filesystem::remove_all(config.data_dir + "/test");
  ASSERT_EQ(look().size(), 1u);
  EXPECT_EQ(look()[0].seen, "2 classes, 3 pictures");
  std::filesystem::remove_all(config.data_dir + "/train");
  EXPECT_TRUE(look().empty());
}

TEST(HostChecks, ABusyNodeIsNotDisturbed) {
  const TemporaryDirectory directory;
  schema::NodeConfig config = config_in(directory.path());
  config.memory_mib = 1;  // what a run has taken is no finding
  daemon::Report report;
  daemon::check_node(config, processor(), 1, true, report);
  const schema::Examination facts = report.facts();
  EXPECT_EQ(facts.engine + facts.engine_problem + facts.memory_problem, "");
}

}  // namespace
}  // namespace tg::tests
