#include <gtest/gtest.h>

#include "engine/model.h"
#include "engine/models/builder.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const Segment& segment : model.segments.segments()) names.push_back(segment.name);
  return names;
}

std::vector<std::string> decaying(const Model& model) {
  std::vector<std::string> names;
  for (const Segment& segment : model.segments.segments()) {
    if (segment.decays) names.push_back(segment.name);
  }
  return names;
}

using Names = std::vector<std::string>;
using Shape = std::vector<std::int64_t>;

TEST(Models, LenetIsThePapers) {
  const Model model = make_model(ModelKind::kLenet);
  EXPECT_EQ(model.segments.parameter_count(), 1'256'080u);
  EXPECT_EQ(model.input, (ImageShape{1, 28, 28}));
  EXPECT_EQ(model.classes, 10);
  EXPECT_EQ(names_of(model), (Names{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                    "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(model.segments[2].shape, (Shape{50, 20, 5, 5}));
  EXPECT_EQ(model.segments[4].shape, (Shape{500, 2450}));
  EXPECT_EQ(decaying(model), (Names{"conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight"}));
}

TEST(Models, CifarnetIsThePapers) {
  const Model model = make_model(ModelKind::kCifarnet);
  EXPECT_EQ(model.segments.parameter_count(), 1'068'298u);
  EXPECT_EQ(model.input, (ImageShape{3, 24, 24}));
  EXPECT_EQ(names_of(model), (Names{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                    "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}));
  EXPECT_EQ(model.segments[0].shape, (Shape{64, 3, 5, 5}));
  EXPECT_EQ(model.segments[4].shape, (Shape{384, 2304}));
  EXPECT_EQ(decaying(model), (Names{"fc1.weight", "fc2.weight"}));
  EXPECT_EQ(model.segments[3].initial_value, 0.1);
}

TEST(Models, OutlinesHaveThePublishedSizes) {
  const std::pair<ModelKind, std::size_t> sizes[] = {{ModelKind::kLenetCaffe, 431'080},
                                                     {ModelKind::kCifarnet32, 1'756'426},
                                                     {ModelKind::kGooglenet, 6'998'552},
                                                     {ModelKind::kAlexnet, 61'100'840},
                                                     {ModelKind::kVggA, 132'863'336}};
  for (const auto& [kind, parameters] : sizes) {
    const Model model = make_model(kind);
    EXPECT_EQ(model.segments.parameter_count(), parameters) << model.name;
    EXPECT_FALSE(model.trainable()) << model.name;
  }
  EXPECT_EQ(make_model(ModelKind::kAlexnet).classes, 1000);
  EXPECT_EQ(std::size(sizes) + 2, values_of<ModelKind>().size());
}

TEST(Models, OnlyTheLastDenseLayerGivesTheLogits) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const Model model = make_model(kind);
    EXPECT_EQ(model.name, to_word(kind));
    for (std::size_t i = 0; i < model.segments.size(); ++i) {
      EXPECT_EQ(model.segments[i].last_layer, i + 2 >= model.segments.size()) << model.name << ' ' << i;
    }
  }
}

TEST(Segments, LieOneAfterAnotherAtMultiplesOfABlock) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const SegmentTable segments = make_model(kind).segments;
    std::size_t next = 0, real = 0;
    for (const Segment& segment : segments.segments()) {
      EXPECT_EQ(segment.offset % kernels::kBlock, 0u);
      EXPECT_EQ(segment.offset, next);
      EXPECT_GE(segment.padded_count(), segment.element_count);
      EXPECT_LT(segment.padded_count() - segment.element_count, kernels::kBlock);
      next += segment.padded_count();
      real += segment.element_count;
    }
    EXPECT_EQ(segments.padded_count(), next);
    EXPECT_EQ(segments.parameter_count(), real);
  }
}

TEST(Segments, HashSeesNamesShapesAndInitialRules) {
  const SegmentTable original = make_model(ModelKind::kLenet).segments;
  EXPECT_EQ(original.hash(), make_model(ModelKind::kLenet).segments.hash());
  EXPECT_NE(original.hash(), make_model(ModelKind::kCifarnet).segments.hash());
  const auto changed = [&](auto change) {
    std::vector<Segment> segments = original.segments();
    change(segments);
    return SegmentTable(segments).hash();
  };
  EXPECT_EQ(original.hash(), changed([](auto&) {}));
  EXPECT_NE(original.hash(), changed([](auto& s) { s[0].name = "conv0.weight"; }));
  EXPECT_NE(original.hash(), changed([](auto& s) { std::swap(s[4].shape[0], s[4].shape[1]); }));
  EXPECT_NE(original.hash(), changed([](auto& s) { s[1].initial_value = 0.1; }));
  EXPECT_NE(original.hash(), changed([](auto& s) { s[0].initial_deviation = 0.051; }));
  EXPECT_NE(original.hash(), changed([](auto& s) { s[0].decays = false; }));
}

TEST(Builder, PadsAsTensorflowDoes) {
  // 24 by a window of 3 every 2: 12 outputs need one pixel, which goes after.
  const Model model = ModelBuilder("m", {1, 24, 24}).max_pooling(3, 2).max_pooling(2, 2).dense("fc", 2, {}).build();
  const auto& first = std::get<MaxPooling>(model.layers[0]);
  EXPECT_EQ(first.pad_before, 0);
  EXPECT_EQ(first.pad_after, 1);
  const auto& second = std::get<MaxPooling>(model.layers[1]);
  EXPECT_EQ(second.pad_before + second.pad_after, 0);
  EXPECT_EQ(std::get<Dense>(model.layers[2]).in_features, 36);
}

}  // namespace
}  // namespace tg::engine
