#include "engine/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/flops.h"
#include "engine/graph/shapes.h"
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

struct Size {
  ModelKind kind;
  std::size_t parameters;
  double forward_gflops;  // multiply-adds twice, per sample
};

// torchvision's own numbers; slim's, option B's and the paper's AlexNet counted by hand from their layers.
constexpr Size kSizes[] = {{ModelKind::kLenet, 1'256'080, 0.013044},
                           {ModelKind::kCifarnet, 1'068'298, 0.036942},
                           {ModelKind::kGooglenet, 13'004'888, 3.0128},
                           {ModelKind::kAlexnet, 61'100'840, 1.4284},
                           {ModelKind::kVggA, 132'863'336, 15.22},
                           {ModelKind::kAlexnetTwoColumn, 60'969'321, 1.4565},
                           {ModelKind::kGooglenetSlim, 6'618'649, 2.996},
                           {ModelKind::kResnet18, 11'689'512, 3.628},
                           {ModelKind::kResnet20, 272'474, 0.08163},
                           {ModelKind::kResnet50, 25'557'032, 8.178},
                           {ModelKind::kMlp, 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10, 0.0004695}};

TEST(Models, HaveThePublishedSizes) {
  ASSERT_EQ(std::size(kSizes), values_of<ModelKind>().size());
  for (const Size& size : kSizes) {
    const Model model = make_model(size.kind);
    EXPECT_EQ(model.segments.parameter_count(), size.parameters) << model.name;
    EXPECT_NEAR(training_operations(model) / 3e9, size.forward_gflops, 0.005 * size.forward_gflops) << model.name;
  }
}

TEST(Models, TakeOtherImagesAndClassesWhereTheNetworkAllowsIt) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const Result<Model> model = make_model({.kind = kind, .input = ImageShape{2, 96, 80}, .classes = 7});
    ASSERT_TRUE(model.ok()) << to_word(kind) << ": " << model.error().message;
    EXPECT_EQ(model->classes, 7);
    EXPECT_EQ(model->input, (ImageShape{2, 96, 80}));
    EXPECT_TRUE(infer_shapes(*model).ok());
  }
}

TEST(Models, AMisfitIsNamedWithOperatorAndShapes) {
  const Result<Model> small = make_model({.kind = ModelKind::kAlexnet, .input = ImageShape{3, 32, 20}});
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().kind, ErrorKind::kInvalidJob);
  EXPECT_EQ(small.error().message,
            "alexnet: max pooling 6 takes 192x3x1: a window of 3 pixels does not fit in; larger images are needed, or "
            "another model");
}

TEST(Models, MlpHasTheHiddenLayersAskedFor) {
  const Model model =
      make_model({.kind = ModelKind::kMlp, .input = ImageShape{20, 1, 1}, .classes = 3, .hidden = {7, 5}}).value();
  EXPECT_EQ(names_of(model), (Names{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}));
  EXPECT_EQ(model.segments[0].shape, (Shape{7, 20}));
  EXPECT_EQ(model.segments[4].shape, (Shape{3, 5}));
  EXPECT_EQ(make_model({.kind = ModelKind::kMlp, .hidden = {}})->segments.parameter_count(), 7850u);
  EXPECT_FALSE(make_model({.kind = ModelKind::kMlp, .hidden = {0}}).ok());
}

TEST(Models, ResidualNetworksHaveTorchvisionsNames) {
  const Model model = make_model(ModelKind::kResnet18);
  const Names names = names_of(model);
  EXPECT_EQ(Names(names.begin(), names.begin() + 9),
            (Names{"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer1.0.bn1.weight",
                   "layer1.0.bn1.bias", "layer1.0.conv2.weight", "layer1.0.bn2.weight", "layer1.0.bn2.bias"}));
  EXPECT_NE(std::find(names.begin(), names.end(), "layer2.0.downsample.1.weight"), names.end());
  EXPECT_EQ(model.statistics[0].name, "bn1.running_mean");
  EXPECT_EQ(model.statistics[1].name, "bn1.running_var");
  EXPECT_EQ(model.statistics[1].initial_value, 1);
  EXPECT_EQ(model.statistics.parameter_count(), 2 * 4800u);
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

TEST(Models, FreezeByTheBeginningsOfNames) {
  const auto make = [](std::vector<std::string> freeze) {
    return make_model({.kind = ModelKind::kLenet, .freeze = std::move(freeze)});
  };
  const Model lenet = make({"conv", "fc2.b"}).value();
  for (const Segment& segment : lenet.segments.segments()) {
    EXPECT_EQ(segment.frozen, segment.name.starts_with("conv") || segment.name == "fc2.bias") << segment.name;
    EXPECT_EQ(segment.decays, segment.name.starts_with("fc") && segment.name.ends_with("weight")) << segment.name;
  }
  EXPECT_EQ(make({"conv1", "layer1."}).error().message,
            "freeze: no parameter of lenet has a name that begins with layer1.; its names begin with conv1, conv2, "
            "fc1, fc2");
  EXPECT_EQ(make({"conv", "fc"}).error().message, "freeze leaves no parameter of lenet to train");
  EXPECT_EQ(make({"conv", "fc"}).error().kind, ErrorKind::kInvalidJob);
}

TEST(Models, TakeADropoutForEachOfTheirLayers) {
  const auto shares = [](const Result<Model>& model) {
    std::vector<double> list;
    for (const Operator& one : model.value().operators)
      if (const auto* dropout = std::get_if<Dropout>(&one.attributes)) list.push_back(dropout->probability);
    return list;
  };
  const auto make = [](ModelKind kind, std::vector<double> dropout) {
    return make_model({.kind = kind, .dropout = std::move(dropout)});
  };
  EXPECT_EQ(shares(make(ModelKind::kAlexnetTwoColumn, {})), (std::vector<double>{0.2, 0.2}));
  EXPECT_EQ(shares(make(ModelKind::kAlexnetTwoColumn, {0.5, 0})), (std::vector<double>{0.5, 0}));
  EXPECT_EQ(shares(make(ModelKind::kGooglenetSlim, {0.2})), std::vector<double>{0.2});
  EXPECT_EQ(shares(make(ModelKind::kGooglenet, {})), (std::vector<double>{0.7, 0.7, 0.2})) << "the network's is last";
  EXPECT_EQ(make(ModelKind::kVggA, {0.5}).error().message,
            "dropout has 1 value, and vgg-a has 2 dropout layers; give it one value for each");
  EXPECT_EQ(make(ModelKind::kGooglenetSlim, {0.5, 0.5}).error().message,
            "dropout has 2 values, and googlenet-slim has 1 dropout layer; give it one value for each");
  EXPECT_EQ(make(ModelKind::kCifarnet, {0.5}).error().message, "dropout: cifarnet has no dropout layer; leave it out");
  EXPECT_EQ(make(ModelKind::kCifarnet, {0.5}).error().kind, ErrorKind::kInvalidJob);
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
  const Model model =
      ModelBuilder("m", {1, 24, 20}).max_pooling({3, 2}).max_pooling({2, 2}).dense("fc", 2, {}).build().value();
  const Padding& first = std::get<MaxPooling>(model.operators[0].attributes).window.padding;
  EXPECT_EQ(first.top + first.left, 0);
  EXPECT_EQ(first.bottom, 1);
  EXPECT_EQ(first.right, 1);
  const Padding& second = std::get<MaxPooling>(model.operators[1].attributes).window.padding;
  EXPECT_EQ(second.top + second.bottom + second.left + second.right, 0);
  EXPECT_EQ(model.segments[0].shape, (Shape{2, 30}));
}

}  // namespace
}  // namespace tg::engine
