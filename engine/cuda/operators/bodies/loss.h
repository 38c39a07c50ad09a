// Softmax cross-entropy in double, as engine/cpu/loss.cpp: a few lanes of a block take a row, and one block adds the
// rows. Sums have the order of lanes.h, which the number of classes, or of rows, decides; ranks and counts are
// integers.
#pragma once

#include <cmath>

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/lanes.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// One row's part of LossResult.
struct RowLoss {
  double plain, trained;
  std::uint32_t correct, correct_5;
};

struct RowCell {
  double sum;           // sum of exp(logit - highest)
  double smoothed;      // sum of -log(probability), weighted by the targets
  float highest;        // the best of the logits so far
  int place;            // its class; kNothing: none seen yet; kNotANumber: the row begins with NaN
  std::uint32_t above;  // classes that come before the label's
};

// The target probability of a class.
TG_HOST_DEVICE inline double target_of(const LossShape& shape, bool is_label) {
  return (is_label ? 1.0 - shape.smoothing : 0.0) + shape.smoothing / static_cast<double>(shape.classes);
}

TG_HOST_DEVICE inline double weight_of(const LossShape& shape, int label) {
  return shape.class_weights == nullptr ? 1.0 : shape.class_weights[label];
}

struct RowLosses {
  using Cell = RowCell;
  // std::max_element takes a class's logit if it is above the best so far. NaN is above nothing, and nothing is above
  // NaN: so a NaN in the first class is the best of all, and any other NaN is passed over.
  static constexpr int kNothing = INT32_MAX, kNotANumber = -1;

  RowLosses(const LossShape& of, const float* rows_of_logits, const std::int32_t* classes_of_rows, double* softmax,
            RowLoss* results)
      : shape(of),
        lanes(Lanes::of(static_cast<std::uint64_t>(of.classes), 4, 5)),
        logits(rows_of_logits),
        labels(classes_of_rows),
        probabilities(softmax),
        rows(results) {}

  LossShape shape;
  Lanes lanes;
  const float* logits;
  const std::int32_t* labels;
  double* probabilities;  // or null
  RowLoss* rows;

  std::uint64_t blocks() const { return lanes.blocks(static_cast<std::uint64_t>(shape.counted)); }
  // Steps: highest logit; sum and rank; probabilities and losses; result.
  int steps() const { return 3 * (lanes.folds + 1) + 1; }
  TG_HOST_DEVICE void step(int step, std::uint64_t block, int thread, Cell* cells) const {
    const auto row = static_cast<int>(lanes.sum_of(block, thread));
    if (row >= shape.counted) return;  // all lanes of that row return
    Cell& own = cells[thread];
    const Cell& first = cells[lanes.leader(thread)];
    const int lane = lanes.lane(thread), part = step / (lanes.folds + 1), fold = step % (lanes.folds + 1) - 1;
    const std::uint64_t begin = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(shape.classes);
    if (part == 3) {
      if (lane == 0) rows[row] = result(logits + begin, labels[row], own);
    } else if (part == 0) {
      fold < 0 ? find_highest(logits + begin, lane, own) : lanes.fold(fold, thread, cells, take_higher);
    } else if (part == 1) {
      fold < 0 ? add_powers(logits + begin, labels[row], lane, first, own) : lanes.fold(fold, thread, cells, add_sums);
    } else {
      fold < 0 ? add_losses(begin, labels[row], lane, first, own) : lanes.fold(fold, thread, cells, add_smoothed);
    }
  }

 private:
  TG_HOST_DEVICE static void take_higher(Cell& to, const Cell& from) {
    if (!(from.highest > to.highest || (from.highest == to.highest && from.place < to.place))) return;
    to.highest = from.highest;
    to.place = from.place;
  }
  TG_HOST_DEVICE static void add_sums(Cell& to, const Cell& from) {
    to.sum += from.sum;
    to.above += from.above;
  }
  TG_HOST_DEVICE static void add_smoothed(Cell& to, const Cell& from) { to.smoothed += from.smoothed; }

  TG_HOST_DEVICE void find_highest(const float* x, int lane, Cell& own) const {
    float highest = -HUGE_VALF;
    int place = kNothing;
    for (int c = lane; c < shape.classes; c += lanes.count) {
      const float value = x[c];
      if (c == 0 && value != value) {
        highest = HUGE_VALF;
        place = kNotANumber;
      } else if (value > highest || (value == highest && place == kNothing)) {
        highest = value;
        place = c;
      }
    }
    own.highest = highest;
    own.place = place;
  }
  // The logit that std::max_element points at.
  TG_HOST_DEVICE static double highest_of(const float* x, const Cell& first) {
    return first.place == kNotANumber ? x[0] : first.highest;
  }
  TG_HOST_DEVICE void add_powers(const float* x, int label, int lane, const Cell& first, Cell& own) const {
    const double highest = highest_of(x, first);
    double sum = 0;
    std::uint32_t above = 0;
    TG_NO_UNROLL
    for (int c = lane; c < shape.classes; c += lanes.count) {
      sum += exp(static_cast<double>(x[c]) - highest);
      if (c != label && !(x[c] < x[label] || (x[c] == x[label] && c > label))) ++above;
    }
    own.sum = sum;
    own.above = above;
  }
  // -log(probability) = log(sum) - (x - highest), bounded as on the CPU, which replaces a probability of 0 by the least
  // double.
  TG_HOST_DEVICE void add_losses(std::uint64_t begin, int label, int lane, const Cell& first, Cell& own) const {
    constexpr double kMost = 708.39641853226408;  // -log(2^-1022)
    const float* const x = logits + begin;
    const double highest = highest_of(x, first), log_sum = log(first.sum);
    double smoothed = 0;
    TG_NO_UNROLL
    for (int c = lane; c < shape.classes; c += lanes.count) {
      const double power = static_cast<double>(x[c]) - highest, loss = log_sum - power;
      smoothed += target_of(shape, c == label) * (loss > kMost ? kMost : loss);
      if (probabilities != nullptr) probabilities[begin + static_cast<std::uint64_t>(c)] = exp(power) / first.sum;
    }
    own.smoothed = smoothed;
  }
  // own is the first lane's cell.
  TG_HOST_DEVICE RowLoss result(const float* x, int label, const Cell& own) const {
    const double plain = log(own.sum) - (static_cast<double>(x[label]) - highest_of(x, own));
    const int place = own.place == kNotANumber ? 0 : own.place;
    const double loss = shape.smoothing > 0 ? own.smoothed : plain;
    return {plain, weight_of(shape, label) * loss, place == label ? 1U : 0U, own.above < 5 ? 1U : 0U};
  }
};

// One block: a lane adds a run of rows, in their order, and the runs are folded neighbour to neighbour, so that the
// rows stand in their order in the whole sum.
struct SumRows {
  using Cell = RowLoss;

  SumRows(const LossShape& of, const RowLoss* rows_of, LossResult* to)
      : count(of.counted), of_lane((of.counted + kThreads - 1) / kThreads), rows(rows_of), result(to) {}

  int count, of_lane;
  const RowLoss* rows;
  LossResult* result;

  std::uint64_t blocks() const { return 1; }
  int steps() const { return kFolds + 2; }
  TG_HOST_DEVICE void step(int step, std::uint64_t /*block*/, int thread, Cell* cells) const {
    Cell& own = cells[thread];
    if (step == 0) {
      own = {0, 0, 0, 0};
      for (int row = thread * of_lane; row < (thread + 1) * of_lane && row < count; ++row) take_in(own, rows[row]);
    } else if (step <= kFolds) {
      const int distance = 1 << (step - 1);
      if (thread % (2 * distance) == 0) take_in(own, cells[thread + distance]);
    } else if (thread == 0) {
      result->plain = own.plain;
      result->trained = own.trained;
      result->correct = own.correct;
      result->correct_5 = own.correct_5;
    }
  }

 private:
  static constexpr int kFolds = 8;
  static_assert(1 << kFolds == kThreads);

  TG_HOST_DEVICE static void take_in(Cell& to, const RowLoss& from) {
    to.plain += from.plain;
    to.trained += from.trained;
    to.correct += from.correct;
    to.correct_5 += from.correct_5;
  }
};

// One thread computes one class of a row; 0 in the rows that do not count.
struct LossGradient {
  LossGradient(const LossShape& of, const double* softmax, const std::int32_t* classes_of_rows, const float* scale,
               double weight_of_head, float* to)
      : shape(of),
        by_classes(static_cast<std::uint64_t>(of.classes)),
        probabilities(softmax),
        labels(classes_of_rows),
        factor(scale),
        weight(weight_of_head),
        gradient(to) {}

  LossShape shape;
  Divider by_classes;
  const double* probabilities;
  const std::int32_t* labels;
  const float* factor;
  double weight;
  float* gradient;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(shape.rows) * static_cast<std::uint64_t>(shape.classes);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts row = by_classes(thread);
    if (row.quotient >= static_cast<std::uint64_t>(shape.counted)) {
      gradient[thread] = 0;
      return;
    }
    const std::int32_t label = labels[row.quotient];
    const double target = target_of(shape, row.remainder == static_cast<std::uint32_t>(label));
    gradient[thread] = static_cast<float>(static_cast<double>(*factor) * weight * weight_of(shape, label) *
                                          (probabilities[thread] - target));
  }
};

}  // namespace tg::engine::cuda::bodies
