// What an operator makes of what it takes, and what is said where it cannot; the numbers are PyTorch's.
#include "engine/graph/shapes.h"

#include <gtest/gtest.h>

#include "engine/models/builder.h"

namespace tg::engine {
namespace {

ImageShape made(Attributes attributes, std::vector<ImageShape> inputs) {
  const Result<ImageShape> shape = infer_shape({"one", std::move(attributes), {}}, inputs);
  EXPECT_TRUE(shape.ok()) << shape.error().message;
  return shape.ok() ? *shape : ImageShape{};
}

std::string misfit(Attributes attributes, std::vector<ImageShape> inputs) {
  const Result<ImageShape> shape = infer_shape({"one", std::move(attributes), {}}, inputs);
  if (shape.ok()) return "fits: " + text_of(*shape);
  EXPECT_EQ(shape.error().kind, ErrorKind::kInvalidJob);
  return shape.error().message;
}

Window window(int kernel, int stride, int padding, bool ceil = false, int dilation = 1) {
  return {kernel, stride, dilation, {padding, padding, padding, padding}, ceil};
}

TEST(Shapes, AreThoseOfPytorch) {
  EXPECT_EQ(made(Convolution{.out_channels = 64, .window = window(11, 4, 2)}, {{3, 224, 224}}),
            (ImageShape{64, 55, 55}));
  EXPECT_EQ(made(Convolution{.out_channels = 6, .groups = 3, .window = window(3, 2, 2, false, 2)}, {{9, 20, 11}}),
            (ImageShape{6, 10, 6}));
  EXPECT_EQ(made(MaxPooling{window(3, 2, 0)}, {{5, 8, 7}}), (ImageShape{5, 3, 3}));
  EXPECT_EQ(made(MaxPooling{window(3, 2, 0, true)}, {{5, 8, 7}}), (ImageShape{5, 4, 3}));
  // A last window that would begin behind the image does not count: 1 + ceil((4 + 2 - 2) / 3) = 3, less one.
  EXPECT_EQ(made(MaxPooling{window(2, 3, 1, true)}, {{1, 4, 6}}), (ImageShape{1, 2, 3}));
  EXPECT_EQ(made(AdaptiveAverage{6, 4}, {{256, 13, 3}}), (ImageShape{256, 6, 4}));
  EXPECT_EQ(made(Flatten{}, {{16, 5, 4}}), (ImageShape{320, 1, 1}));
  EXPECT_EQ(made(Dense{.out_features = 10}, {{320, 1, 1}}), (ImageShape{10, 1, 1}));
  EXPECT_EQ(made(Concat{}, {{3, 8, 6}, {5, 8, 6}, {1, 8, 6}}), (ImageShape{9, 8, 6}));
  EXPECT_EQ(made(Add{}, {{3, 8, 6}, {3, 8, 6}}), (ImageShape{3, 8, 6}));
}

TEST(Shapes, AMisfitNamesOperatorAndShapes) {
  EXPECT_EQ(misfit(Add{}, {{3, 8, 6}, {3, 6, 8}}), "one takes 3x8x6 and 3x6x8: both have to be alike");
  EXPECT_EQ(misfit(Concat{}, {{3, 8, 6}, {3, 8, 5}}), "one takes 3x8x6 and 3x8x5: only channels may differ");
  EXPECT_EQ(misfit(Dense{.out_features = 10}, {{16, 5, 5}}),
            "one takes 16x5x5: a dense layer takes rows; flatten them first");
  EXPECT_EQ(misfit(Dropout{0.5}, {{16, 5, 5}}), "one takes 16x5x5: dropout takes rows; flatten them first");
  EXPECT_EQ(misfit(Dropout{1.0}, {{16, 1, 1}}), "one takes 16x1x1: its probability is 0 or more and below 1");
  EXPECT_EQ(misfit(Convolution{.out_channels = 6, .groups = 4, .window = window(3, 1, 1)}, {{8, 5, 5}}),
            "one takes 8x5x5: 4 groups do not divide its channels and 6 filters");
  EXPECT_EQ(misfit(Convolution{.out_channels = 6, .window = window(7, 1, 0)}, {{3, 6, 9}}),
            "one takes 3x6x9: a window of 7 pixels does not fit in; larger images are needed, or another model");
  EXPECT_EQ(misfit(MaxPooling{window(2, 2, 2)}, {{3, 6, 6}}), "one takes 3x6x6: a padding of 2 holds a whole window");
  EXPECT_EQ(misfit(Relu{}, {{3, 0, 6}}), "one takes 3x0x6: that holds nothing");
  EXPECT_EQ(misfit(Relu{}, {{1 << 20, 1 << 14, 1 << 14}}),
            "one takes 1048576x16384x16384: that is more than a value may hold; smaller images are needed");
  EXPECT_EQ(misfit(Add{}, {{3, 8, 6}}), "one takes 3x8x6: that is another number of inputs than it has");
  EXPECT_EQ(misfit(CrossEntropy{.smoothing = 1}, {{3, 1, 1}}),
            "one takes 3x1x1: label smoothing is 0 or more and below 1");
}

class Graph : public testing::Test {
 protected:
  Graph() {
    ModelBuilder builder("m", {3, 8, 8});
    builder.convolution("conv1", {4, 3}, {}).batch_normalization("bn1", {}).relu().dense("fc1", 5, {});
    model_ = builder.build().value();
  }
  std::string problem() const {
    const Result<std::vector<ImageShape>> shapes = infer_shapes(model_);
    return shapes.ok() ? "" : shapes.error().message;
  }
  Model model_;
};

TEST_F(Graph, HasAShapeForEveryValue) {
  const std::vector<ImageShape> shapes = infer_shapes(model_).value();
  ASSERT_EQ(shapes.size(), model_.operators.size() + 1);
  EXPECT_EQ(shapes.front(), model_.input);
  EXPECT_EQ(shapes[4], (ImageShape{256, 1, 1}));
}

TEST_F(Graph, TakesNoValueThatComesLater) {
  model_.operators[1].inputs = {7};
  EXPECT_EQ(problem(), "bn1 takes value 7, which no operator before it makes");
}

TEST_F(Graph, HasNoUnusedValues) {
  model_.operators.insert(model_.operators.end() - 1, {"relu 9", Relu{}, {1}});
  model_.operators.back().inputs = {5};
  EXPECT_EQ(problem(), "relu 9 makes a value that nobody uses");
}

// Choices of algorithms are kept by layer.
TEST_F(Graph, HasNoTwoLayersOfOneName) {
  model_.operators[1].name = "conv1";
  EXPECT_EQ(problem(), "m has two layers named conv1");
}

TEST_F(Graph, HasOneHeadForEvaluation) {
  std::get<CrossEntropy>(model_.operators.back().attributes).auxiliary = true;
  EXPECT_EQ(problem(), "m has 0 heads for evaluation; it needs one");
}

TEST_F(Graph, UsesItsSegmentsInOrderAndShape) {
  auto& normalization = std::get<BatchNormalization>(model_.operators[1].attributes);
  std::swap(*normalization.gamma, normalization.beta);
  EXPECT_EQ(problem(), "bn1 uses segment 3 where 2 is next");
  std::swap(*normalization.gamma, normalization.beta);
  std::get<Convolution>(model_.operators[0].attributes).groups = 3;
  std::get<Convolution>(model_.operators[0].attributes).out_channels = 6;
  EXPECT_EQ(problem(), "conv1 needs conv1.weight of 6x1x3x3, and it is 4x3x3x3");
}

}  // namespace
}  // namespace tg::engine
