// The choices of a job, each with its words (kernels/base/words.h); models, data sets, optimizers and schedules are in
// engine/choices.h. Exchange and coding travel as numbers too: append only.
#pragma once

#include <cstdint>

#include "engine/choices.h"

namespace tg::schema {

// The source of gradients: computed from data, or made once before the first step.
enum class Compute : std::uint8_t { kTrain, kReplay };
constexpr auto words_of(Compute) { return words("train", "replay"); }

// Where weight decay is added: to the gradient before it is ternarized, or at the update.
enum class WeightDecayPath : std::uint8_t { kInside, kOutside };
constexpr auto words_of(WeightDecayPath) { return words("inside", "outside"); }

// The form in which a segment's gradient is sent.
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

// The basis on which members split a batch: the weights in their nodes' configurations, or how fast each computes.
enum class Split : std::uint8_t { kWeight, kSpeed };
constexpr auto words_of(Split) { return words("weight", "speed"); }

// The state that a run's model file holds: the last one, or the one with the best evaluation.
enum class Keep : std::uint8_t { kLast, kBest };
constexpr auto words_of(Keep) { return words("last", "best"); }

// The nodes that take part in a run.
enum class Members : std::uint8_t { kAll };
constexpr auto words_of(Members) { return words("all"); }

}  // namespace tg::schema
