#include "tests/engine/small_networks.h"

#include "engine/models/builder.h"

namespace tg::engine {
namespace {

ModelBuilder small(ImageShape input = {3, 7, 7}) { return ModelBuilder("small", input); }

const LocalResponseNormalization kStrong{.radius = 2, .bias = 1.5F, .alpha = 0.4F, .beta = 0.75F};
const Filters kBare{.count = 6, .kernel = 3, .bias = false};  // before a batch normalization, where a bias does nothing

// Convolution and batch normalization, twice: the trunk of the small residual networks.
ModelBuilder residual(int stride) {
  ModelBuilder builder = small({3, 8, 6});
  builder.convolution("conv1", kBare, {}).batch_normalization("bn1", {}).relu();
  const std::size_t input = builder.place();
  builder.convolution("conv2", {.count = 6, .kernel = 3, .stride = stride, .bias = false}, {})
      .batch_normalization("bn2", {})
      .relu()
      .convolution("conv3", kBare, {})
      .batch_normalization("bn3", {});
  const std::size_t branch = builder.place();
  std::size_t shortcut = input;
  if (stride > 1) {
    builder.from(input)
        .convolution("downsample", {.count = 6, .stride = stride, .bias = false}, {})
        .batch_normalization("bn4", {});
    shortcut = builder.place();
  }
  builder.from(branch).add(shortcut).relu();
  return builder;
}

const SmallNetwork kNetworks[] = {
    {"dense",
     [] {
       return small({2, 3, 3}).dense("fc1", 5, {}).build();
     }},
    {"dense_relu",
     [] {
       return small({2, 3, 3}).dense("fc1", 9, {}).relu().dense("fc2", 4, {}).build();
     }},
    {"dense_without_bias",
     [] {
       return small({2, 3, 3}).dense("fc1", 9, {}, false).relu().dense("fc2", 4, {}, false).build();
     }},
    {"convolution",
     [] {
       return small().convolution("conv1", {5, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"convolution_twice",
     [] {
       return small().convolution("conv1", {5, 5}, {}).convolution("conv2", {6, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"convolution_relu",
     [] {
       return small()
           .convolution("conv1", {5, 3}, {})
           .relu()
           .convolution("conv2", {4, 3}, {})
           .relu()
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_in_strides_without_bias",
     [] {
       return small({3, 9, 6})
           .convolution("conv1", {.count = 5, .kernel = 3, .stride = 2, .bias = false}, {})
           .convolution("conv2", {.count = 4, .kernel = 3, .stride = 2, .padding = 1}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_dilated",
     [] {
       return small({3, 9, 8})
           .convolution("conv1", {.count = 5, .kernel = 3, .padding = 2, .dilation = 2}, {})
           .relu()
           .convolution("conv2", {.count = 4, .kernel = 3, .padding = 0, .dilation = 2}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_in_groups",
     [] {
       return small({4, 7, 6})
           .convolution("conv1", {.count = 6, .kernel = 3, .groups = 2}, {})
           .relu()
           .convolution("conv2", {.count = 9, .kernel = 3, .stride = 2, .groups = 3, .bias = false}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"pooling_2",
     [] {
       return small().convolution("conv1", {5, 3}, {}).max_pooling({2, 2}).dense("fc1", 4, {}).build();
     }},
    {"pooling_3_of_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", {5, 3}, {}).relu().max_pooling({3, 2}).dense("fc1", 4, {}).build();
     }},
    {"pooling_then_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", {5, 3}, {}).max_pooling({3, 2}).relu().dense("fc1", 4, {}).build();
     }},
    {"pooling_of_images",
     [] {
       return small().max_pooling({3, 2}).convolution("conv1", {4, 3}, {}).dense("fc1", 3, {}).build();
     }},
    {"pooling_up_to_the_ceiling",
     [] {
       return small({3, 8, 7})
           .convolution("conv1", {5, 3}, {})
           .relu()
           .max_pooling({.kernel = 3, .stride = 2, .padding = 0, .ceil = true})
           .convolution("conv2", {5, 3}, {})
           .max_pooling({.kernel = 3, .stride = 2, .padding = 1})
           .dense("fc1", 4, {})
           .build();
     }},
    {"average_of_parts",
     [] {
       return small({3, 7, 8})
           .convolution("conv1", {5, 3}, {})
           .relu()
           .adaptive_average(3, 5)
           .convolution("conv2", {4, 3}, {})
           .adaptive_average(1, 1)
           .dense("fc1", 4, {})
           .build();
     }},
    {"average_over_more_parts_than_pixels",
     [] {
       return small({3, 2, 3}).convolution("conv1", {5, 3}, {}).adaptive_average(4, 4).dense("fc1", 4, {}).build();
     }},
    {"normalization",
     [] {
       return small().convolution("conv1", {9, 3}, {}).normalization(kStrong).dense("fc1", 4, {}).build();
     }},
    {"normalization_in_groups",
     [] {
       LocalResponseNormalization by_column = kStrong;
       by_column.groups = 2;
       return small().convolution("conv1", {10, 3}, {}).normalization(by_column).dense("fc1", 4, {}).build();
     }},
    {"relu_of_normalization",
     [] {
       return small({3, 8, 8})
           .convolution("conv1", {16, 3}, {})
           .normalization(kStrong)
           .relu()
           .max_pooling({2, 2})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization",
     [] {
       return small()
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {})
           .convolution("conv2", {5, 3}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_relu",
     [] {
       return small({3, 8, 6})
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {.epsilon = 1e-3F})
           .relu()
           .max_pooling({2, 2})
           .convolution("conv2", {.count = 16, .kernel = 3, .bias = false}, {})
           .batch_normalization("bn2", {})
           .relu()
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_without_gamma",
     [] {
       return small({3, 5, 4})
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {.gamma = false})
           .relu()
           .convolution("conv2", {.count = 16, .kernel = 3, .bias = false}, {})
           .batch_normalization("bn2", {.gamma = false})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_of_images",
     [] {
       return small().batch_normalization("bn1", {}).convolution("conv1", {5, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"residual", [] { return residual(1).adaptive_average(1, 1).dense("fc1", 4, {}).build(); }},
    {"residual_with_projection", [] { return residual(2).dense("fc1", 4, {}).build(); }},
    {"add_without_relu",
     [] {
       ModelBuilder builder = small();
       const std::size_t first = builder.convolution("conv1", {5, 3}, {}).relu().place();
       return builder.from(0)
           .convolution("conv2", {5, 3}, {})
           .add(first)
           .convolution("conv3", {4, 3}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"concat_of_branches",
     [] {
       ModelBuilder builder = small({3, 8, 6});
       const std::size_t input = builder.convolution("conv1", {5, 3}, {}).relu().place();
       const std::size_t one = builder.convolution("conv2", {3, 1}, {}).relu().place();
       builder.from(input).convolution("conv3", {4, 1}, {}).relu().convolution("conv4", {2, 3}, {});
       const std::size_t three = builder.relu().place();
       const std::size_t pooled = builder.from(input).max_pooling({3, 1}).convolution("conv5", {6, 1}, {}).place();
       builder.concat({one, three, pooled, input}).convolution("conv6", {4, 3}, {});
       return builder.dense("fc1", 4, {}).build();
     }},
    {"relu_beside_another_reader",
     [] {
       ModelBuilder builder = small();
       const std::size_t raw = builder.convolution("conv1", {5, 3}, {}).place();
       const std::size_t positive = builder.relu().place();
       return builder.concat({raw, positive, raw}).max_pooling({3, 2}).dense("fc1", 4, {}).build();
     }},
    {"dropout",
     [] {
       return small({2, 4, 4})
           .dense("fc1", 19, {})
           .relu()
           .dropout(0.3)
           .dense("fc2", 17, {})
           .dropout(0.5)
           .relu()
           .dense("fc3", 4, {})
           .build();
     }},
    {"dropout_beside_another_reader",
     [] {
       ModelBuilder builder = small({2, 4, 4});
       const std::size_t whole = builder.dense("fc1", 19, {}).place();
       const std::size_t thinned = builder.dropout(0.4).place();
       return builder.concat({whole, thinned}).dense("fc2", 4, {}).build();
     }},
    {"auxiliary_heads",
     [] {
       ModelBuilder builder = small({3, 8, 6});
       const std::size_t early = builder.convolution("conv1", {5, 3}, {}).relu().place();
       const std::size_t late = builder.convolution("conv2", {5, 3}, {}).relu().place();
       builder.from(early).adaptive_average(2, 2).dense("aux1", 4, {}).auxiliary_head(0.3);
       builder.from(late).max_pooling({2, 2}).dense("aux2", 4, {}).auxiliary_head(0.7);
       return builder.from(late).dense("fc1", 4, {}).build(0.1);
     }},
    {"class_weights",
     [] {
       ModelBuilder builder = small();
       const std::size_t features = builder.convolution("conv1", {5, 3}, {}).relu().place();
       builder.max_pooling({2, 2}).dense("aux", 4, {}).auxiliary_head(0.3);
       Result<Model> model = builder.from(features).dense("fc1", 4, {}).build(0.1);
       if (model.ok()) model->class_weights = {0.5, 2, 1.25, 0.25};
       return model;
     }},
};

}  // namespace

std::span<const SmallNetwork> small_networks() { return kNetworks; }

}  // namespace tg::engine
