#include "engine/models/models.h"
#include "engine/models/replay_only/segment_list.h"

namespace tg::engine {
namespace {

// Table 1 of Szegedy et al., "Going deeper with convolutions", CVPR 2015: filters of one inception module.
struct Inception {
  const char* name;
  int in_channels, one, three_reduce, three, five_reduce, five, pool;
};

constexpr Inception kInceptions[] = {
    {"inception_3a", 192, 64, 96, 128, 16, 32, 32},     {"inception_3b", 256, 128, 128, 192, 32, 96, 64},
    {"inception_4a", 480, 192, 96, 208, 16, 48, 64},    {"inception_4b", 512, 160, 112, 224, 24, 64, 64},
    {"inception_4c", 512, 128, 128, 256, 24, 64, 64},   {"inception_4d", 512, 112, 144, 288, 32, 64, 64},
    {"inception_4e", 528, 256, 160, 320, 32, 128, 128}, {"inception_5a", 832, 256, 160, 320, 32, 128, 128},
    {"inception_5b", 832, 384, 192, 384, 48, 128, 128},
};

}  // namespace

// Biases everywhere, no batch normalization, without the two auxiliary classifiers: 6,998,552 parameters.
Result<Model> make_googlenet_biases(const ModelOptions& options) {
  SegmentList segments(to_word(options.kind), {3, 224, 224});
  segments.convolution("conv1", 3, 64, 7).convolution("conv2_reduce", 64, 64, 1).convolution("conv2", 64, 192, 3);
  for (const Inception& module : kInceptions) {
    const std::string name = module.name;
    segments.convolution(name + ".1x1", module.in_channels, module.one, 1)
        .convolution(name + ".3x3_reduce", module.in_channels, module.three_reduce, 1)
        .convolution(name + ".3x3", module.three_reduce, module.three, 3)
        .convolution(name + ".5x5_reduce", module.in_channels, module.five_reduce, 1)
        .convolution(name + ".5x5", module.five_reduce, module.five, 5)
        .convolution(name + ".pool_proj", module.in_channels, module.pool, 1);
  }
  return segments.dense("classifier", 1024, 1000).build();
}

}  // namespace tg::engine
