// A model's stages for one batch size, in order: images in, logits out, gradients back. What runs and where its buffers
// lie is planned when it is made (plan.h, arena.h); runs on the calling thread. The device is shared by the networks of
// an engine and outlives them, and so may be their memory: a network runs once bind has given it some.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/cpu/stages/stage.h"
#include "engine/cpu/team.h"
#include "engine/engine.h"

namespace tg::engine::cpu {

struct NetworkOptions {
  int batch = 1;
  bool training = false;
  std::uint64_t seed = 0;
  bool sharing = true;  // of memory; false: every buffer at a place of its own, for comparison
};

class Network {
 public:
  Network(Device& device, const Model& model, const NetworkOptions& options);

  int batch() const { return options_.batch; }
  // Heads as the plan has them, that of evaluation last.
  const std::vector<HeadPlan>& heads() const { return plan_.heads; }

  // Bytes that bind needs, and those that no plan could do without.
  std::size_t bytes() const { return placement_.bytes; }
  std::size_t least_bytes() const { return most_bytes_at_once(arena_.needs()); }
  void bind(std::byte* memory);

  // images: `count` <= batch() samples, NCHW; a short batch is filled up with zeros. The logits of all batch() rows are
  // valid until the next forward or, in training, until backward.
  void forward(const Pass& pass, const float* images, int count, const Engine::SegmentGate& gate);
  std::span<const float> logits(std::size_t head) const;
  // Training only: the caller fills those of all heads between forward and backward.
  std::span<float> logits_gradient(std::size_t head);
  void backward(float* gradients, const Engine::SegmentSink& sink);
  void read_statistics(float* measured) const;

 private:
  // A stage as it runs; no stage where nothing does (a view).
  struct Running {
    std::unique_ptr<Stage> stage;
    bool backward = false;  // somebody wants the output's gradient
    // What its backward adds to inputs' gradients: from -> to.
    struct Addition {
      dnnl::memory from, to;
    };
    std::vector<Addition> additions;
  };
  Activation activation(std::size_t value);
  Running make_running(std::size_t stage);

  Device& device_;
  const Model& model_;
  const NetworkOptions options_;
  const Plan plan_;
  Arena arena_;
  Placement placement_;
  dnnl::memory images_;  // view of the caller's images, NCHW
  AlignedArray<float> short_batch_;
  Operation load_images_;
  std::vector<Running> running_;
  std::vector<Activation> logits_;  // by head
  Team team_;
};

}  // namespace tg::engine::cpu
