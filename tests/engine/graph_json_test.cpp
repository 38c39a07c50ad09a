#include "engine/graph/graph_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/models/builder.h"

namespace tg::engine {
namespace {

using nlohmann::json;

Model two_heads() {
  ModelBuilder builder("two-heads", {3, 8, 6});
  builder.convolution("conv1", {.count = 4, .kernel = 3, .stride = 2, .bias = false}, {});
  builder.batch_normalization("bn1", {.epsilon = 1e-3F, .gamma = false}).relu();
  const std::size_t shared = builder.place();
  builder.flatten().dense("aux", 5, {}).auxiliary_head(0.3);
  builder.from(shared).max_pooling({.kernel = 2, .stride = 2, .padding = 0, .ceil = true}).flatten();
  builder.dense("fc", 5, {});
  return builder.build().value();
}

TEST(GraphJson, ListsTheOperatorsOfEvaluation) {
  const json graph = json::parse(graph_json(two_heads()));
  EXPECT_EQ(graph["output"].get<std::string>(), "fc");
  std::vector<std::string> kinds;
  for (const json& one : graph["operators"]) kinds.push_back(one["kind"].get<std::string>());
  EXPECT_EQ(kinds, (std::vector<std::string>{"convolution", "batch-normalization", "relu", "max-pooling", "flatten",
                                             "dense"}));
  const json &convolution = graph["operators"][0], &normalization = graph["operators"][1],
             &pooling = graph["operators"][3];
  EXPECT_EQ(convolution["inputs"].dump(), R"(["input"])");
  EXPECT_EQ(convolution["weight"].get<std::string>(), "conv1.weight");
  EXPECT_FALSE(convolution.contains("bias"));
  EXPECT_EQ(convolution["padding"].dump(), "[0,0,1,1]") << "top, left, bottom, right: SAME of 8 x 6 at stride 2";
  EXPECT_EQ(normalization["inputs"].dump(), R"(["conv1"])");
  EXPECT_EQ(normalization["epsilon"].get<float>(), 1e-3F);
  EXPECT_FALSE(normalization.contains("gamma"));
  EXPECT_EQ(normalization["beta"].get<std::string>(), "bn1.bias");
  EXPECT_EQ(normalization["mean"].get<std::string>(), "bn1.running_mean");
  EXPECT_EQ(normalization["variance"].get<std::string>(), "bn1.running_var");
  EXPECT_TRUE(pooling["ceil"].get<bool>());
}

TEST(GraphJson, NamesEveryValueOfEveryModelOnce) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const Model model = make_model(kind);
    const json graph = json::parse(graph_json(model));
    std::set<std::string> values{"input"};
    for (const json& one : graph["operators"]) {
      for (const json& input : one["inputs"]) EXPECT_TRUE(values.contains(input.get<std::string>())) << one.dump();
      EXPECT_TRUE(values.insert(one["name"].get<std::string>()).second) << model.name << ": " << one.dump();
    }
    EXPECT_TRUE(values.contains(graph["output"].get<std::string>())) << model.name;
  }
}

}  // namespace
}  // namespace tg::engine
