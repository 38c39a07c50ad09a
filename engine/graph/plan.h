// The plan by which a network runs a model, made before any buffer exists: which operators become one stage, which
// values share a buffer, and how long each buffer is needed. Pure, and independent of the library that computes.
//
// Time is counted in slots; one thing runs in each:
//
//   0 load of the images | 1 .. S the stages' forward | S + 1 the losses
//   S + 2 .. 2S + 1 the stages' backward, last first
//
// A value's buffer lives from the slot that fills it to the last that reads it, and so does its gradient's. A stage may
// overwrite an input that is not read later (relu, add, dropout, and their backward); a flatten of one pixel and a
// dropout in evaluation are only views. If several stages take a value, the last of them writes its gradient, and the
// others add theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/model.h"

namespace tg::engine {

inline constexpr std::size_t kNoBuffer = std::numeric_limits<std::size_t>::max();

// What a stage's backward does to the gradient of an input.
enum class Contribution : std::uint8_t { kNone, kWrites, kAdds };

// An operator with the operators fused into it.
struct StagePlan {
  std::size_t op = 0;               // index of the model's operator
  std::vector<std::size_t> inputs;  // values
  std::size_t output = 0;           // value; the relu's if one is fused
  bool relu = false;                // a relu is fused
  // relu'(x) is left to the max pooling that follows, which multiplies it into its own output's gradient: max pooling
  // and relu commute (a maximum is positive if its source is), and the output has fewer elements.
  bool mask_left = false, mask_taken = false;
  bool view = false;                             // nothing runs forward: the output is the input in another shape
  std::vector<Contribution> contributions = {};  // by input; empty in evaluation
};

struct Lifetime {
  std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;  // slots, both included
  void extend(std::size_t slot) {
    if (slot < first) first = slot;
    if (slot > last) last = slot;
  }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

struct HeadPlan {
  CrossEntropy loss;
  std::size_t logits = 0;  // value
};

struct Plan {
  std::vector<ImageShape> shapes;  // by value
  std::vector<StagePlan> stages;   // in the order of the forward pass
  std::vector<HeadPlan> heads;     // the one used in evaluation is last
  // By value; kNoBuffer if it is never made (inside a fused stage) or its gradient is not wanted.
  std::vector<std::size_t> value_buffers, gradient_buffers;
  std::vector<Lifetime> lifetimes;  // by buffer

  std::size_t forward_slot(std::size_t stage) const { return stage + 1; }
  std::size_t loss_slot() const { return stages.size() + 1; }
  std::size_t backward_slot(std::size_t stage) const { return 2 * stages.size() + 1 - stage; }
};

struct PlanOptions {
  bool training = false;
  bool sharing = true;  // false: every value has its own buffer, for comparison
  // Images are stored in C, H, W order, so that every flatten is only a view.
  bool canonical_images = false;
};

// The model must be trainable and pass infer_shapes (engine/graph/shapes.h). Evaluation leaves out operators that lead
// only to auxiliary heads.
Plan make_plan(const Model& model, const PlanOptions& options);

}  // namespace tg::engine
