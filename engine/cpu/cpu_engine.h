// The oneDNN engine behind make_cpu_engine, for the tests of engine/cpu: what the contract of engine/engine.h leaves
// out.
#pragma once

#include <vector>

#include "engine/cpu/network.h"
#include "engine/engine.h"

namespace tg::engine::cpu {

class CpuEngine final : public Engine {
 public:
  // Throws std::runtime_error naming the failing call, std::bad_alloc.
  CpuEngine(Model model, const EngineOptions& options);

  const SegmentTable& segments() const override { return model_.segments; }
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override;
  using Engine::forward;
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  EvaluationCounts evaluate(const float* parameters, const Batch& batch) override;
  std::string build() const override;

  // Which of oneDNN's implementations each operation got: "conv1 forward: brgconv:avx512_core".
  const std::vector<std::string>& implementations() const { return device_.implementations(); }

 private:
  void claim_threads() const;

  const Model model_;
  const EngineOptions options_;
  Device device_;
  Network training_;
  Network evaluation_;
  std::vector<double> probabilities_;
  std::vector<std::int32_t> labels_;
};

}  // namespace tg::engine::cpu
