// The choices of a job, each with its words (kernels/base/words.h); models, data sets, optimizers and schedules are in
// engine/choices.h. Exchange and coding travel as numbers too: append only.
#pragma once

#include <cstdint>

#include "engine/choices.h"

namespace tg::schema {

// Where gradients come from: computed from data, or made once before the first step.
enum class Compute : std::uint8_t { kTrain, kReplay };
constexpr auto words_of(Compute) { return words("train", "replay"); }

// Weight decay is added to the gradient before ternarizing, or at the update.
enum class WeightDecayPath : std::uint8_t { kInside, kOutside };
constexpr auto words_of(WeightDecayPath) { return words("inside", "outside"); }

// How a segment's gradient travels.
enum class GradientFormat : std::uint8_t { kTernary, kFloat32, kFloat16 };
constexpr auto words_of(GradientFormat) { return words("ternary", "float32", "float16"); }

// A local scaler is eq. (2) of the paper, or c*sigma even above max|g| as in its authors' code.
enum class ScalerRecipe : std::uint8_t { kPaper, kRepo };
constexpr auto words_of(ScalerRecipe) { return words("paper", "repo"); }

// A segment's scaler is the largest of all members' (eq. 4), or each member keeps its own.
enum class ScalerSharing : std::uint8_t { kMax, kNone };
constexpr auto words_of(ScalerSharing) { return words("max", "none"); }

enum class ExchangeKind : std::uint16_t { kDirect = 0, kSharded = 1 };
constexpr auto words_of(ExchangeKind) { return words("direct", "sharded"); }

// How ternary payloads are coded: planes as they are, or entropy-coded (rANS) where that is smaller.
enum class Coding : std::uint16_t { kRaw = 0, kEntropy = 1 };
constexpr auto words_of(Coding) { return words("raw", "entropy"); }

// By what the members split a batch: the weights in their nodes' configurations, or how fast each computes.
enum class Split : std::uint8_t { kWeight, kSpeed };
constexpr auto words_of(Split) { return words("weight", "speed"); }

// Which state a run's model file is of: the last one, or the one with the best evaluation.
enum class Keep : std::uint8_t { kLast, kBest };
constexpr auto words_of(Keep) { return words("last", "best"); }

// Which nodes take part in a run.
enum class Members : std::uint8_t { kAll };
constexpr auto words_of(Members) { return words("all"); }

}  // namespace tg::schema
