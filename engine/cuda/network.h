// A model's stages for one batch size (engine/network/network.h) on a device: images in, losses out, gradients back.
// Once it is bound its algorithms are chosen, then it runs.
//
// The passes launch on the library's compute stream and do not wait, so that they can be captured. Errors name the
// operator: std::runtime_error, and what Trials throws.
#pragma once

#include <vector>

#include "engine/cuda/stages/stage.h"
#include "engine/network/network.h"

namespace tg::engine::cuda {

class Network : public NetworkOf<Cuda> {
 public:
  Network(Library& library, const Model& model, const NetworkOptions& options);

  void choose(Trials& trials);

  // Where the images of batch() samples go, NCHW, before forward.
  float* images() const { return images_.floats(); }
  // In the order of forward. The ranges whose parameters it reads.
  std::vector<SegmentRange> segments() const;

  void forward(const Pass& pass);
  // After it, of the last head: rows of batch() samples.
  const float* logits() const { return heads_.back().logits.value.floats(); }
  // Training only. complete(range): launched after what fills these segments; last first.
  void backward(const Pass& pass, float* gradients, const Engine::SegmentSink& complete);

 private:
  struct Head {
    LossShape shape;
    double weight;
    Activation logits;
    View probabilities, scratch;  // probabilities: empty in evaluation
  };
  Head make_head(const HeadPlan& plan);

  View images_;
  std::vector<Head> heads_;
};

}  // namespace tg::engine::cuda
