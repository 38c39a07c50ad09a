#include "daemon/run/description.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/storage/tensor_image.h"

namespace tg::daemon {
namespace {

using nlohmann::json;

engine::Dataset folder_of(std::vector<std::string> classes) {
  engine::Dataset data;
  data.kind = DatasetKind::kFolder;
  data.train.stored = {1, 28, 28};
  data.train.pixels.assign(2 * 784, 100);
  data.train.labels = {0, 1};
  data.test = data.train;
  data.classes = std::move(classes);
  return data;
}

std::string described(const engine::Dataset& data) {
  const engine::Model model = engine::make_model(ModelKind::kLenet);
  const engine::Recipe recipe = engine::make_recipe(data, model.input).value();
  schema::JobSpec job;
  job.test_share = 0.25;
  job.data_seed = 5;
  return describe(model, recipe, data, job).value();
}

TEST(Description, SufficesToUseTheModel) {
  const json about = json::parse(described(folder_of({"cat", "dog"})));
  EXPECT_EQ(about["model"].get<std::string>(), "lenet");
  EXPECT_EQ(about["parameters"].get<std::uint64_t>(), 1'256'080u);
  EXPECT_EQ(about["input"].dump(), R"({"channels":"grey","order":"CHW","shape":[1,28,28]})");
  EXPECT_EQ(about["preprocessing"]["normalization"].get<std::string>(), "measured");
  EXPECT_EQ(about["preprocessing"]["mean"][0].get<float>(), 100.0F / 255.0F);
  EXPECT_EQ(about["data"]["kind"].get<std::string>(), "folder");
  EXPECT_EQ(about["data"]["test_samples"].get<int>(), 2);
  EXPECT_EQ(about["data"]["test_share"].get<double>(), 0.25);
  EXPECT_EQ(about["data"]["seed"].get<int>(), 5);
  EXPECT_EQ(about["classes"].dump(), R"(["cat","dog"])");
  EXPECT_EQ(about["graph"]["operators"][0]["weight"].get<std::string>(), "conv1.weight");
}

TEST(Description, NamesThatAreNoUtf8CostNoFile) {
  const json about = json::parse(described(folder_of({"caf\xe9", "dog"})));
  EXPECT_EQ(about["classes"][0].get<std::string>(), "caf\xef\xbf\xbd");
}

TEST(Description, LeavesOutNamesThatTakeMoreThanItMayHave) {
  // Every byte of these takes two in JSON, and four as JSON in a header.
  const std::string full = described(folder_of(std::vector<std::string>(65'535, std::string(28, '"'))));
  EXPECT_TRUE(json::parse(full)["classes"].is_array());
  EXPECT_LE(full.size(), kMaxDescriptionBytes);
  EXPECT_TRUE(engine::TensorImage::of({}, {{"description", full}}).ok()) << "a header can hold the largest";
  const std::string more = described(folder_of(std::vector<std::string>(65'535, std::string(40, '"'))));
  EXPECT_TRUE(json::parse(more)["classes"].is_null());
}

TEST(Description, RefusesNumbersThatTakeMoreThanItMayHave) {
  const engine::Dataset data = folder_of({"cat", "dog"});
  const engine::Model model = engine::make_model(ModelKind::kLenet);
  engine::Recipe recipe = engine::make_recipe(data, model.input).value();
  recipe.mean.assign(300'000, 0.1F);
  recipe.deviation = recipe.mean;
  const Result<std::string> about = describe(model, recipe, data, {});
  ASSERT_FALSE(about.ok());
  EXPECT_EQ(about.error().kind, ErrorKind::kInvalidJob);
  EXPECT_NE(about.error().message.find("has 300000 features"), std::string::npos) << about.error().message;
  EXPECT_NE(about.error().message.find("set normalization = none"), std::string::npos) << about.error().message;
}

}  // namespace
}  // namespace tg::daemon
