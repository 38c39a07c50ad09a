// The oneDNN engine behind make_cpu_engine, with what the tests of engine/cpu need beyond the contract of
// engine/engine.h.
#pragma once

#include <vector>

#include "engine/cpu/network.h"
#include "engine/engine.h"

namespace tg::engine::cpu {

class CpuEngine final : public Engine {
 public:
  // Throws std::runtime_error naming the failing call, std::bad_alloc, or TooLarge. sharing: let buffers share memory
  // (network.h).
  CpuEngine(Model model, const EngineOptions& options, bool sharing = true);

  const SegmentTable& segments() const override { return model_.segments; }
  const SegmentTable& statistics() const override { return model_.statistics; }
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override;
  using Engine::forward;
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  void read_statistics(float* measured) const override { training_.read_statistics(measured); }
  EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch,
                            std::span<float> logits) override;
  using Engine::evaluate;
  std::string build() const override;
  std::size_t activation_bytes() const override { return memory_.size() + library_.scratchpad_bytes(); }

  // Which of oneDNN's implementations each operation got: "conv1 forward: brgconv:avx512_core".
  const std::vector<std::string>& implementations() const { return library_.implementations(); }
  const Network& training() const { return training_; }
  const Network& evaluation() const { return evaluation_; }
  // The main head's logits in the last forward.
  std::span<const float> logits() const { return training_.logits(training_.heads().size() - 1); }

 private:
  void claim_threads() const;

  const Model model_;
  const EngineOptions options_;
  Library library_;
  Network training_;
  Network evaluation_;
  AlignedArray<std::byte> memory_;                  // shared by both networks, which never run at the same time
  std::vector<std::vector<double>> probabilities_;  // by head of training_
  // The last forward's. Without labels, backward cannot be called.
  Pass pass_;
  std::vector<std::int32_t> labels_;
};

}  // namespace tg::engine::cpu
