// What a job or a node's configuration can choose of the engine: what computes, models, data, schedules. Each choice
// has its words (kernels/base/words.h); the optimizers are in kernels/base/optimizer_kind.h, the exchange's choices in
// schema/choices.h. Needs nothing else of the engine, so that schema/ and ctl/ may use it.
#pragma once

#include <cstdint>

#include "kernels/base/optimizer_kind.h"
#include "kernels/base/words.h"

namespace tg {

// What computes on a node. kAuto: a device if one can be opened, else the processor. The others: that or nothing.
enum class EngineKind : std::uint8_t { kAuto, kCpu, kCuda };
constexpr auto words_of(EngineKind) { return words("auto", "cpu", "cuda"); }

// How a device multiplies. fp32: in float32 with nothing left out. tf32, bf16: factors are rounded to 10 and 7 bits of
// mantissa, sums stay float32. Parameters, gradients and updates are float32 in each.
enum class Math : std::uint8_t { kFp32, kTf32, kBf16 };
constexpr auto words_of(Math) { return words("fp32", "tf32", "bf16"); }

// alexnet, vgg-a, googlenet, resnet-18 and resnet-50 are torchvision's.
enum class ModelKind : std::uint8_t {
  kLenet,
  kCifarnet,
  kGooglenet,
  kAlexnet,
  kVggA,
  kAlexnetTwoColumn,
  kGooglenetSlim,
  kResnet18,
  kResnet20,
  kResnet50,
  kMlp
};
constexpr auto words_of(ModelKind) {
  return words("lenet", "cifarnet", "googlenet", "alexnet", "vgg-a", "alexnet-two-column", "googlenet-slim",
               "resnet-18", "resnet-20", "resnet-50", "mlp");
}

enum class DatasetKind : std::uint8_t { kSynthetic, kMnist, kCifar10, kCifar100, kFolder, kIdx, kNpy, kFractals };
constexpr auto words_of(DatasetKind) {
  return words("synthetic", "mnist", "cifar10", "cifar100", "folder", "idx", "npy", "fractals");
}

// What happens when a picture's file cannot be decoded: the run ends, or the picture is skipped.
enum class Damaged : std::uint8_t { kFatal, kSkip };
constexpr auto words_of(Damaged) { return words("fatal", "skip"); }

// The part of a picture that training sees; engine/recipe.h defines it.
enum class Crop : std::uint8_t { kNone, kWindow, kArea };
constexpr auto words_of(Crop) { return words("none", "window", "area"); }

// What a resize keeps: the picture's aspect, or nothing of it: both sides become equally long.
enum class ResizeShape : std::uint8_t { kAspect, kSquare };
constexpr auto words_of(ResizeShape) { return words("aspect", "square"); }

enum class Flip : std::uint8_t { kNone, kHorizontal };
constexpr auto words_of(Flip) { return words("none", "horizontal"); }

enum class Colour : std::uint8_t { kNone, kPaper, kJitter };
constexpr auto words_of(Colour) { return words("none", "paper", "jitter"); }

// How a stored value becomes an input of the engine.
enum class Normalization : std::uint8_t { kNone, kSymmetric, kPerImage, kGiven, kMeasured };
constexpr auto words_of(Normalization) { return words("none", "symmetric", "per-image", "given", "measured"); }

enum class ScheduleKind : std::uint8_t { kConstant, kStaircase, kPolynomial, kCosine };
constexpr auto words_of(ScheduleKind) { return words("constant", "staircase", "polynomial", "cosine"); }

}  // namespace tg
