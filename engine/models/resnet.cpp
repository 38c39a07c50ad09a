#include <iterator>
#include <span>

#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {
namespace {

struct Stack {
  int filters, blocks, stride;
};

// A family of residual networks (He et al., CVPR 2016), with torchvision's names. expansion: that of a block's last
// convolution: 1 for two 3x3, 4 for 1x1, 3x3 (which has the stride), 1x1.
class Residual {
 public:
  Residual(const ModelOptions& options, int expansion)
      : options_(options), builder_(to_word(options.kind), *options.input), expansion_(expansion) {}

  void stem(const Filters& filters) { normalized("conv1", "bn1", filters).relu(); }
  void pool() { builder_.max_pooling({.kernel = 3, .stride = 2, .padding = 1}); }

  Result<Model> build(std::span<const Stack> stacks) {
    int number = 1;
    for (const Stack& stack : stacks) {
      for (int i = 0; i < stack.blocks; ++i)
        block("layer" + std::to_string(number) + "." + std::to_string(i) + ".", stack.filters,
              i == 0 ? stack.stride : 1);
      ++number;
    }
    builder_.adaptive_average(1, 1).flatten();
    builder_.dense("fc", options_.classes, uniform_parameters(builder_.shape().channels));
    return builder_.build(options_.label_smoothing);
  }

 private:
  ModelBuilder& normalized(const std::string& convolution, const std::string& normalization, Filters filters) {
    filters.bias = false;
    return builder_.convolution(convolution, filters, he_parameters(filters.count * filters.kernel * filters.kernel))
        .batch_normalization(normalization, {});
  }

  void block(const std::string& name, int filters, int stride) {
    const Filters small{.count = filters, .kernel = 3, .stride = stride, .padding = 1};
    const int made = filters * expansion_;
    const std::size_t input = builder_.place();
    const bool projects = stride != 1 || builder_.shape().channels != made;
    if (expansion_ == 1) {
      normalized(name + "conv1", name + "bn1", small).relu();
      normalized(name + "conv2", name + "bn2", {.count = made, .kernel = 3, .padding = 1});
    } else {
      normalized(name + "conv1", name + "bn1", {.count = filters, .padding = 0}).relu();
      normalized(name + "conv2", name + "bn2", small).relu();
      normalized(name + "conv3", name + "bn3", {.count = made, .padding = 0});
    }
    const std::size_t residual = builder_.place();
    std::size_t shortcut = input;
    if (projects) {
      builder_.from(input);
      normalized(name + "downsample.0", name + "downsample.1", {.count = made, .stride = stride, .padding = 0});
      shortcut = builder_.place();
    }
    builder_.from(residual).add(shortcut).relu();
  }

  const ModelOptions& options_;
  ModelBuilder builder_;
  const int expansion_;
};

constexpr Filters kLargeStem{.count = 64, .kernel = 7, .stride = 2, .padding = 3};

}  // namespace

// ResNet-20 for CIFAR-10, with projections at the beginning of a stack (option B): 272,474 parameters.
Result<Model> make_resnet_20(const ModelOptions& options) {
  constexpr Stack kStacks[] = {{16, 3, 1}, {32, 3, 2}, {64, 3, 2}};
  Residual network(options, 1);
  network.stem({.count = 16, .kernel = 3, .padding = 1});
  return network.build(kStacks);
}

// torchvision's ResNet-18: 11,689,512 parameters.
Result<Model> make_resnet_18(const ModelOptions& options) {
  constexpr Stack kStacks[] = {{64, 2, 1}, {128, 2, 2}, {256, 2, 2}, {512, 2, 2}};
  Residual network(options, 1);
  network.stem(kLargeStem);
  network.pool();
  return network.build(kStacks);
}

// torchvision's ResNet-50: 25,557,032 parameters.
Result<Model> make_resnet_50(const ModelOptions& options) {
  constexpr Stack kStacks[] = {{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}};
  Residual network(options, 4);
  network.stem(kLargeStem);
  network.pool();
  return network.build(kStacks);
}

}  // namespace tg::engine
