// A device's engine, behind Accelerator::make_engine (accelerator.h); the contract is engine.h's.
//
// A step is two CUDA graphs, its forward and its backward pass. Whatever differs from step to step is in device memory
// that is written before the launch: the images (prefetch.h), labels, dropout's position, the gradient's factor. After
// each part of the gradient the backward graph tells the host (progress.h), and the sink is called while earlier layers
// are still in backward. Every call returns when the device is done.
#pragma once

#include <string>
#include <vector>

#include "engine/cuda/graphs.h"
#include "engine/cuda/mirror.h"
#include "engine/cuda/network.h"
#include "engine/cuda/prefetch.h"
#include "engine/cuda/progress.h"
#include "engine/engine.h"

namespace tg::engine::cuda {

struct DeviceChoice {
  int number = 0;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  Math math = Math::kFp32;
};

class CudaEngine final : public Engine {
 public:
  // Throws std::runtime_error naming the failing call, std::invalid_argument, std::bad_alloc, TooLarge.
  CudaEngine(Model model, const DeviceChoice& device, const EngineOptions& options);
  ~CudaEngine() override;

  const SegmentTable& segments() const override { return model_.segments; }
  const SegmentTable& statistics() const override { return model_.statistics; }
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override;
  using Engine::forward;
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  void prefetch(const Batch& next) override;
  void forget_prefetch() override;
  void read_statistics(float* measured) const override;
  EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch,
                            std::span<float> logits) override;
  using Engine::evaluate;
  std::string build() const override;
  std::string choices() const override;
  std::size_t activation_bytes() const override { return fixed_bytes() + memory_.size() + library_.workspace_bytes(); }

  // "conv1 forward: algorithm 1, 12 MiB", in the order of the forward pass, evaluation's last.
  const std::vector<std::string>& implementations() const { return implementations_; }

 private:
  struct Step {
    std::uint64_t first_position;
    std::uint64_t number;  // the backward launch's number
    float factor;
  };

  std::size_t fixed_bytes() const;  // device memory besides memory_ and the workspace
  Trials::Options trial_options(std::uint64_t most_workspace) const;
  void choose_algorithms();
  void load_labels(const std::int32_t* labels, int count);
  Pass pass(const float* parameters, int counted);
  // Queues work, and returns or throws when the device is done: the caller may use all memory at once.
  template <class Work>
  void finish(const Work& work);

  const Model model_;
  const EngineOptions options_;
  const DeviceChoice device_;
  Library library_;
  Network training_;
  Network evaluation_;
  const std::vector<SegmentRange> ranges_;  // training_'s segments, in the order of the forward pass

  Mirror<std::int32_t> labels_;
  Mirror<double> class_weights_;  // the model's
  Mirror<Step> step_;
  Mirror<LossResult> results_;        // by head
  Mirror<float> measured_, running_;  // laid out as the model's statistics
  // The memory of both networks, which never run at the same time, followed by that of the prefetched images.
  kernels::cuda::DeviceArray<std::byte> memory_;
  std::vector<std::string> implementations_;

  Progress complete_;  // by range, in backward's order
  Graphs forward_, backward_;
  std::uint64_t backwards_ = 0;
  const float* parameters_ = nullptr;  // the last forward's; null if backward cannot be called
  Prefetch prefetch_;                  // destroyed first: it waits for its copies
};

// As make_cpu_engine, on a device.
Result<std::unique_ptr<Engine>> make_cuda_engine(const Model& model, const DeviceChoice& device,
                                                 const EngineOptions& options);

}  // namespace tg::engine::cuda
