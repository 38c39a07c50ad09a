// One training step of an engine, with its results on the host.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/accelerator.h"
#include "kernels/memory_array.h"
#include "tests/gpu/values.h"

namespace tg::gpu {

struct Step {
  double loss = 0;
  AlignedArray<float> gradient, statistics;  // flat
};

// Makes engines. All engines of one model and batch take the choices of the first one, which times the algorithms.
class Engines {
 public:
  explicit Engines(engine::Accelerator& accelerator) : accelerator_(accelerator) {}
  // Throws Wrong.
  std::unique_ptr<engine::Engine> make(const engine::Model& model, engine::EngineOptions options);
  // "  choices: conv1 forward: algorithm 1, 12 MiB; ..", of the engine that was made last.
  const std::string& last() const { return last_; }

 private:
  engine::Accelerator& accelerator_;
  std::map<std::pair<std::string, int>, std::string> choices_;  // by graph and batch
  std::string last_;
};

inline void ignore(std::size_t, std::size_t) {}

// Every real element of the gradient is NaN before it, padding 0.
Step step_of(engine::Engine& engine, kernels::MemorySpace& space, std::span<const float> parameters,
             const engine::Batch& batch, float factor);

// |ours - theirs| / |theirs| over `count` elements; infinite where one of ours is NaN.
double distance(std::span<const float> ours, std::span<const float> theirs);
double norm(std::span<const float> values);

// A flat array whose real elements are NaN and whose padding is 0.
AlignedArray<float> unwritten(const engine::SegmentTable& segments);
std::span<const float> of_segment(const AlignedArray<float>& flat, const engine::Segment& segment);

}  // namespace tg::gpu
