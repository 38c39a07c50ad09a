// The numbers of `tgctl models` are the engine's.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/models/model_report.h"
#include "ctl/models/model_table.h"
#include "engine/graph/flops.h"
#include "engine/model.h"

namespace tg::ctl {
namespace {

bool takes_side(ModelKind kind, int channels, int side) {
  return engine::make_model({.kind = kind, .input = engine::ImageShape{channels, side, side}}).ok();
}

TEST(Models, EveryNumberIsTheEngines) {
  for (const ModelRow& row : model_rows()) {
    const engine::Model model = engine::make_model(row.kind);
    EXPECT_EQ((engine::ImageShape{row.channels, row.height, row.width}), model.input) << model.name;
    EXPECT_EQ(row.parameters, static_cast<std::int64_t>(model.segments.parameter_count())) << model.name;
    // Backward has twice the operations of forward.
    EXPECT_EQ(row.operations, static_cast<std::int64_t>(engine::training_operations(model) / 3)) << model.name;
  }
}

TEST(Models, LeastSideIsTheSmallestThatFits) {
  constexpr int kSome = 40;  // sides above it: poolings round in other ways there
  for (const ModelRow& row : model_rows()) {
    for (int side = 1; side < row.least_side; ++side)
      EXPECT_FALSE(takes_side(row.kind, row.channels, side)) << to_word(row.kind) << " " << side;
    for (int side = row.least_side; side < row.least_side + kSome; ++side)
      EXPECT_TRUE(takes_side(row.kind, row.channels, side)) << to_word(row.kind) << " " << side;
  }
}

TEST(Models, TableFitsATerminalAndNamesThem) {
  const std::string text = format_models();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const ModelKind kind : values_of<ModelKind>())
    EXPECT_NE(text.find("\n" + std::string(to_word(kind)) + " "), std::string::npos) << to_word(kind);
}

TEST(Models, JsonHasStableKeys) {
  const nlohmann::json json = nlohmann::json::parse(format_models_json());
  EXPECT_EQ(json["schema_version"], kModelsJsonVersion);
  ASSERT_EQ(json["models"].size(), values_of<ModelKind>().size());
  const nlohmann::json lenet = json["models"][0];
  EXPECT_EQ(lenet["name"], "lenet");
  EXPECT_EQ(lenet["input"], (std::vector<int>{1, 28, 28}));
  EXPECT_EQ(lenet["parameters"], 1'256'080);
  EXPECT_TRUE(lenet["trainable"]);
}

}  // namespace
}  // namespace tg::ctl
