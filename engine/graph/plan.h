// What a network runs for a model, decided before any buffer exists: which operators become one stage, which values
// share a buffer, and how long each buffer is needed. Pure, and knows nothing of the library that computes.
//
// Time is counted in slots, one thing at a time runs in each:
//
//   0 load of the images | 1 .. S the stages' forward | S + 1 the losses | S + 2 .. 2S + 1 the stages' backward, last
//   first
//
// A value's buffer lives from the slot that fills it to the last that reads it, and so does its gradient's. A stage may
// overwrite an input that nobody reads any more (relu, add, dropout, and the way back through them); a flatten of one
// pixel and a dropout in evaluation are only views. Of a value that several stages take, the last of them writes the
// gradient, and the others add theirs.
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

// An operator with what is fused into it.
struct StagePlan {
  std::size_t op = 0;               // of the model
  std::vector<std::size_t> inputs;  // values
  std::size_t output = 0;           // value: that of the relu, where one is fused
  bool relu = false;                // fused
  // relu'(x) is left to the max pooling behind, which multiplies it into its own output's gradient: max pooling and
  // relu commute (a maximum is positive where its source is), and there are fewer elements there.
  bool mask_left = false, mask_taken = false;
  bool view = false;                             // nothing runs forward: the output is the input, by another shape
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
  std::vector<HeadPlan> heads;     // that of evaluation last
  // By value; kNoBuffer: it is never made (a fused operator's own) or nobody wants its gradient.
  std::vector<std::size_t> value_buffers, gradient_buffers;
  std::vector<Lifetime> lifetimes;  // by buffer

  std::size_t forward_slot(std::size_t stage) const { return stage + 1; }
  std::size_t loss_slot() const { return stages.size() + 1; }
  std::size_t backward_slot(std::size_t stage) const { return 2 * stages.size() + 1 - stage; }
};

struct PlanOptions {
  bool training = false;
  bool sharing = true;  // false: every value has a buffer of its own, for comparison
  // Images lie in memory in C, H, W order, so that every flatten is only a view.
  bool canonical_images = false;
};

// Of a model that can be trained (engine/graph/shapes.h finds nothing wrong with it). Evaluation leaves out what leads
// to auxiliary heads only.
Plan make_plan(const Model& model, const PlanOptions& options);

}  // namespace tg::engine
