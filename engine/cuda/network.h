// A model's stages for one batch size, in order: images in, losses out, gradients back. What runs and where its buffers
// lie is planned when it is made (plan.h, arena.h). The library is shared by the networks of an engine and outlives
// them, and so does their memory: a network is bound to some, then its algorithms are chosen, then it runs.
//
// The passes launch on the library's compute stream and do not wait, so that they can be captured. One thread at a
// time. Errors name the operator: std::runtime_error, and what Trials throws.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/stages/stage.h"
#include "engine/engine.h"

namespace tg::engine::cuda {

struct NetworkOptions {
  int batch = 1;
  bool training = false;
  std::uint64_t seed = 0;
};

class Network {
 public:
  Network(Library& library, const Model& model, const NetworkOptions& options);

  int batch() const { return options_.batch; }
  // Heads as the plan has them, that of evaluation last.
  const std::vector<HeadPlan>& heads() const { return plan_.heads; }

  // Bytes that bind needs.
  std::size_t bytes() const { return placement_.bytes; }
  void bind(std::byte* memory) { arena_.bind(placement_, memory); }
  void choose(Trials& trials);

  // Where the images of batch() samples go, NCHW, before forward.
  float* images() const { return images_.floats(); }
  // In the order of forward. The ranges whose parameters it reads.
  std::vector<SegmentRange> segments() const;

  void forward(const Pass& pass);
  // Training only. complete(range): launched after what fills these segments; last first.
  using Complete = std::function<void(const SegmentRange& range)>;
  void backward(const Pass& pass, float* gradients, const Complete& complete);

 private:
  // A stage as it runs; no stage where nothing does (a view).
  struct Running {
    std::string name;   // the operator's
    std::string layer;  // equal where the libraries' calls are (Trials::begin); empty: there are none
    std::unique_ptr<Stage> stage;
    bool backward = false;  // somebody wants the output's gradient
    // What its backward adds to inputs' gradients: from -> to.
    struct Addition {
      View from, to;
      std::size_t count;  // floats
    };
    std::vector<Addition> additions;
  };
  struct Head {
    LossShape shape;
    double weight;
    Activation logits;
    View probabilities, scratch;  // probabilities: empty in evaluation
  };
  Activation activation(std::size_t value);
  Running make_running(std::size_t stage);
  Head make_head(const HeadPlan& plan);

  Library& library_;
  const Model& model_;
  const NetworkOptions options_;
  const Plan plan_;
  Arena arena_;
  View images_;
  std::vector<Running> running_;
  std::vector<Head> heads_;
  Placement placement_;
};

}  // namespace tg::engine::cuda
