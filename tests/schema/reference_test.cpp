// The pages with all keys agree with the tables, and the copy of a page in a file is current.
#include "schema/options/reference.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "schema/options/job.h"
#include "schema/options/node_config.h"
#include "schema/options/unused_keys.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(TGD_SOURCE_DIR) + "/" + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class Target>
void expect_all_keys(const std::string& page, const std::vector<Option<Target>>& table) {
  for (const Option<Target>& row : table) {
    EXPECT_TRUE(page.find("\n" + row.name + " =") != std::string::npos ||
                page.find("\n#" + row.name + " =") != std::string::npos)
        << row.name;
  }
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(text_width(line), 80u) << line;
}

TEST(Reference, HasAllKeysOfAJobAndIsOneWithTheDefaults) {
  expect_all_keys(job_reference(), job_options());
  const Result<JobSpec> job = parse_job(job_reference(), "reference.job");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(*job, JobSpec());
}

// Each heading occurs once, with all its keys below it; the most used ones come first.
TEST(Reference, KeysOfAJobAreInGroups) {
  std::vector<std::string> groups;
  for (const Option<JobSpec>& row : job_options())
    if (groups.empty() || groups.back() != row.group) groups.push_back(row.group);
  EXPECT_EQ(groups, (std::vector<std::string>{"The first day", "Data", "Learning", "Gradients: the paper's knobs",
                                              "Measuring", "Running"}));
  EXPECT_EQ(job_options().front().name, "model");
  EXPECT_NE(job_reference().find("\n\n# --- Data ---\n\n# "), std::string::npos);
}

TEST(Reference, FileOfAJobIsThePage) {
  EXPECT_EQ(read("deploy/jobs/reference.job"), job_reference())
      << "write it again: tgctl help job > deploy/jobs/reference.job";
}

// Checks all that a node checks without data.
TEST(Reference, EveryJobFileIsOne) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TGD_SOURCE_DIR) + "/deploy/jobs")) {
    const std::string name = entry.path().filename().string(), text = read("deploy/jobs/" + name);
    const Result<JobSpec> job = parse_job(text, name);
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(validate_job(*job, 2).ok() ? "" : validate_job(*job, 2).error().message, "") << name;
    EXPECT_EQ(unused_keys(*job, text, name), std::vector<std::string>()) << name;
    ++files;
  }
  EXPECT_GE(files, 9u);
}

// The keys in which the rows of the paper's Tables 2 and 3 differ.
TEST(Reference, JobsOfThePapersTablesDifferInWhatItNames) {
  const auto job = [](const std::string& name) { return parse_job(read("deploy/jobs/" + name), name).value(); };
  for (const std::string network : {"alexnet", "googlenet"}) {
    JobSpec ternary = job(network + "-imagenet.job"), floats = job(network + "-imagenet-float32.job");
    EXPECT_EQ(resolved_last_layer(ternary), GradientFormat::kFloat32);
    EXPECT_GT(floats.dropout, ternary.dropout);
    EXPECT_GE(floats.weight_decay, ternary.weight_decay);
    for (JobSpec* one : {&ternary, &floats}) {
      one->gradients = GradientFormat::kTernary;
      one->last_layer.reset();
      one->min_ternary_size = 1;
      one->dropout.clear();
      one->weight_decay = 0;
    }
    EXPECT_EQ(ternary, floats) << network;
  }
}

TEST(Reference, HasAllKeysOfANode) { expect_all_keys(node_reference(), node_options()); }

TEST(Reference, SampleConfigurationKnowsAllKeysOfANode) {
  const std::string sample = "\n" + read("deploy/tgd.conf");
  for (const Option<NodeConfig>& row : node_options()) {
    if (row.name == "fault") continue;  // for tests
    EXPECT_TRUE(sample.find("\n" + row.name + " =") != std::string::npos ||
                sample.find("\n#" + row.name + " =") != std::string::npos)
        << row.name;
  }
}

}  // namespace
}  // namespace tg::schema
