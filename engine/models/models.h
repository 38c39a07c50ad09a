// The networks, one function each. options.input and options.classes must be set; values that do not fit are a
// kInvalidJob that names the operator and the shapes.
#pragma once

#include "engine/model.h"

namespace tg::engine {

Result<Model> make_lenet(const ModelOptions& options);
Result<Model> make_cifarnet(const ModelOptions& options);
Result<Model> make_alexnet(const ModelOptions& options);
Result<Model> make_alexnet_two_column(const ModelOptions& options);
Result<Model> make_googlenet(const ModelOptions& options);
Result<Model> make_googlenet_slim(const ModelOptions& options);
Result<Model> make_vgg_a(const ModelOptions& options);
Result<Model> make_resnet_20(const ModelOptions& options);
Result<Model> make_resnet_18(const ModelOptions& options);
Result<Model> make_resnet_50(const ModelOptions& options);
Result<Model> make_mlp(const ModelOptions& options);

}  // namespace tg::engine
