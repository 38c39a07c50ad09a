// What a job chooses and a layer below the job's own carries out, each choice with its words (words.h). The choices
// that only nodes know are in schema/choices.h.
#pragma once

#include <cstdint>

#include "kernels/base/words.h"

namespace tg {

// From kLenetCaffe on, gradients can be replayed but the model cannot be trained yet (engine/models/outlines).
enum class ModelKind : std::uint8_t { kLenet, kCifarnet, kLenetCaffe, kCifarnet32, kGooglenet, kAlexnet, kVggA };
constexpr auto words_of(ModelKind) {
  return words("lenet", "cifarnet", "lenet-caffe", "cifarnet-32", "googlenet", "alexnet", "vgg-a");
}

enum class DatasetKind : std::uint8_t { kSynthetic, kMnist, kCifar10 };
constexpr auto words_of(DatasetKind) { return words("synthetic", "mnist", "cifar10"); }

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdam };
constexpr auto words_of(OptimizerKind) { return words("sgd", "momentum", "adam"); }

enum class ScheduleKind : std::uint8_t { kConstant, kStaircase, kPolynomial };
constexpr auto words_of(ScheduleKind) { return words("constant", "staircase", "polynomial"); }

}  // namespace tg
