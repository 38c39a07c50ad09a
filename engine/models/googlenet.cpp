#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {
namespace {

// Table 1 of Szegedy et al., "Going deeper with convolutions", CVPR 2015: filters of one inception module.
struct Inception {
  const char *torchvision, *slim;
  int one, three_reduce, three, five_reduce, five, pool;
};

constexpr Inception kInception3a{"inception3a", "Mixed_3b", 64, 96, 128, 16, 32, 32};
constexpr Inception kInception3b{"inception3b", "Mixed_3c", 128, 128, 192, 32, 96, 64};
constexpr Inception kInception4a{"inception4a", "Mixed_4b", 192, 96, 208, 16, 48, 64};
constexpr Inception kInception4b{"inception4b", "Mixed_4c", 160, 112, 224, 24, 64, 64};
constexpr Inception kInception4c{"inception4c", "Mixed_4d", 128, 128, 256, 24, 64, 64};
constexpr Inception kInception4d{"inception4d", "Mixed_4e", 112, 144, 288, 32, 64, 64};
constexpr Inception kInception4e{"inception4e", "Mixed_4f", 256, 160, 320, 32, 128, 128};
constexpr Inception kInception5a{"inception5a", "Mixed_5b", 256, 160, 320, 32, 128, 128};
constexpr Inception kInception5b{"inception5b", "Mixed_5c", 384, 192, 384, 48, 128, 128};

// Both variants start from normals of deviation 0.01, cut at two deviations.
constexpr Parameters kFilters{.weight_deviation = 0.01, .decays = true};

// The common part of the two variants; each has its own names, poolings and normalization.
class Googlenet {
 public:
  Googlenet(const ModelOptions& options, Normalized how, const char* convolution, const char* normalization)
      : builder_(to_word(options.kind), *options.input),
        how_(how),
        convolution_(convolution),
        normalization_(normalization) {}

  ModelBuilder& graph() { return builder_; }

  ModelBuilder& convolution(const std::string& name, Filters filters) {
    filters.bias = false;
    return builder_.convolution(name + convolution_, filters, kFilters)
        .batch_normalization(name + normalization_, how_)
        .relu();
  }

  // names: the six convolutions' names, in the table's order. Both variants have 3x3 in place of the 5x5.
  void inception(const Inception& module, const std::string (&names)[6], const Pool& pool) {
    const std::size_t input = builder_.place();
    const std::size_t one = convolution(names[0], {module.one}).place();
    builder_.from(input);
    convolution(names[1], {module.three_reduce});
    const std::size_t three = convolution(names[2], {module.three, 3}).place();
    builder_.from(input);
    convolution(names[3], {module.five_reduce});
    const std::size_t five = convolution(names[4], {module.five, 3}).place();
    builder_.from(input).max_pooling(pool);
    const std::size_t pooled = convolution(names[5], {module.pool}).place();
    builder_.concat({one, three, five, pooled});
  }

 private:
  ModelBuilder builder_;
  const Normalized how_;
  const std::string convolution_, normalization_;
};

}  // namespace

// torchvision's GoogLeNet, with its two auxiliary heads (weight 0.3, as in the paper): 13,004,888 parameters, 6,624,904
// without the heads.
Result<Model> make_googlenet(const ModelOptions& options) {
  Googlenet network(options, {.epsilon = 1e-3F}, ".conv", ".bn");
  ModelBuilder& graph = network.graph();
  const auto inception = [&](const Inception& module) {
    const std::string name = module.torchvision;
    network.inception(module,
                      {name + ".branch1", name + ".branch2.0", name + ".branch2.1", name + ".branch3.0",
                       name + ".branch3.1", name + ".branch4.1"},
                      {.kernel = 3, .padding = 1, .ceil = true});
  };
  const Pool pool{.kernel = 3, .stride = 2, .padding = 0, .ceil = true};
  network.convolution("conv1", {.count = 64, .kernel = 7, .stride = 2, .padding = 3});
  graph.max_pooling(pool);
  network.convolution("conv2", {64});
  network.convolution("conv3", {192, 3});
  graph.max_pooling(pool);
  inception(kInception3a);
  inception(kInception3b);
  graph.max_pooling(pool);
  inception(kInception4a);
  const std::size_t first = graph.place();
  inception(kInception4b);
  inception(kInception4c);
  inception(kInception4d);
  const std::size_t second = graph.place();
  inception(kInception4e);
  graph.max_pooling({.kernel = 2, .stride = 2, .padding = 0, .ceil = true});
  inception(kInception5a);
  inception(kInception5b);
  const std::size_t trunk = graph.place();
  const auto dense = [&](const std::string& name, int features) -> ModelBuilder& {
    Parameters parameters = uniform_parameters(graph.shape().channels);  // the bias keeps PyTorch's own initial values
    parameters.weight_deviation = kFilters.weight_deviation;
    return graph.dense(name, features, parameters);
  };
  const auto auxiliary = [&](const std::string& name, std::size_t place) {
    graph.from(place).adaptive_average(4, 4);
    network.convolution(name + ".conv", {128});
    graph.flatten();
    dense(name + ".fc1", 1024).relu().dropout(0.7);
    dense(name + ".fc2", options.classes).auxiliary_head(0.3);
  };
  auxiliary("aux1", first);
  auxiliary("aux2", second);
  graph.from(trunk).adaptive_average(1, 1).flatten().dropout(0.2);
  dense("fc", options.classes);
  return graph.build(options.label_smoothing);
}

// The GoogLeNet that the paper trains (terngrad/inception/slim/inception_v1.py): no auxiliary heads, batch
// normalization without gamma in every convolution but the last: 6,618,649 parameters. Dropout as for ternary
// gradients: 0.08; with float32 the paper has 0.2.
Result<Model> make_googlenet_slim(const ModelOptions& options) {
  Googlenet network(options, {.epsilon = 1e-3F, .momentum = 3e-4F, .gamma = false}, "", ".BatchNorm");
  ModelBuilder& graph = network.graph();
  const auto inception = [&](const Inception& module) {
    const std::string name = std::string(module.slim) + ".Branch_";
    network.inception(module,
                      {name + "0.Conv2d_0a_1x1", name + "1.Conv2d_0a_1x1", name + "1.Conv2d_0b_3x3",
                       name + "2.Conv2d_0a_1x1", name + "2.Conv2d_0b_3x3", name + "3.Conv2d_0b_1x1"},
                      {.kernel = 3});
  };
  network.convolution("Conv2d_1a_7x7", {.count = 64, .kernel = 7, .stride = 2});
  graph.max_pooling({3, 2});
  network.convolution("Conv2d_2b_1x1", {64});
  network.convolution("Conv2d_2c_3x3", {192, 3});
  graph.max_pooling({3, 2});
  inception(kInception3a);
  inception(kInception3b);
  graph.max_pooling({3, 2});
  for (const Inception& module : {kInception4a, kInception4b, kInception4c, kInception4d, kInception4e})
    inception(module);
  graph.max_pooling({2, 2});
  inception(kInception5a);
  inception(kInception5b);
  graph.adaptive_average(1, 1).flatten().dropout(0.08);
  graph.dense("logits.Conv2d_0c_1x1", options.classes, kFilters);
  return graph.build(options.label_smoothing);
}

}  // namespace tg::engine
