// A module for tests (engine/accelerator.h): its device is this processor, behind a memory space that only its
// kernels and its engines can touch, as a device's memory is. What it computes are the processor's bits.
//
// device 0: with 8 GiB free; 1: with 1 MiB free; 2: it does not answer when asked for its memory; 3: it dies in its
// first run, after so many calls; others are not there.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/accelerator.h"
#include "kernels/kernels.h"
#include "schema/version.h"
#include "tests/simulation/simulator/awkward_memory.h"

namespace tg::tests {
namespace {

using engine::Batch;
using simulation::AwkwardMemory;

constexpr std::uint64_t kCallsOfALife = 400;  // more than a start needs

class StandInEngine final : public engine::Engine {
 public:
  StandInEngine(std::unique_ptr<engine::Engine> processor, AwkwardMemory& space, Math math)
      : processor_(std::move(processor)), space_(space), math_(math) {}

  const engine::SegmentTable& segments() const override { return processor_->segments(); }
  const engine::SegmentTable& statistics() const override { return processor_->statistics(); }
  using Engine::forward;
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override {
    parameters_ = parameters;
    const AwkwardMemory::Call call(space_, {floats(parameters)}, {std::as_bytes(batch.images.span())});
    return processor_->forward(parameters, batch, gate);
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    const AwkwardMemory::Call call(space_, {floats(parameters_), floats(gradients)}, {});
    processor_->backward(factor, gradients, sink);
  }
  void read_statistics(float* measured) const override { processor_->read_statistics(measured); }
  using Engine::evaluate;
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch,
                                    std::span<float> logits) override {
    const AwkwardMemory::Call call(space_, {floats(parameters)}, {std::as_bytes(batch.images.span())});
    return processor_->evaluate(parameters, statistics, batch, logits);
  }
  std::string build() const override { return std::string("stand-in ") + to_word(math_) + ", " + processor_->build(); }
  std::string choices() const override {
    return "ip1 forward: the processor's, 0 MiB\nip1 backward data: the same, 0 MiB";
  }
  std::size_t activation_bytes() const override { return processor_->activation_bytes(); }

 private:
  kernels::ConstFloats floats(const float* address) const { return {address, segments().padded_count()}; }

  const std::unique_ptr<engine::Engine> processor_;
  AwkwardMemory& space_;
  const Math math_;
  const float* parameters_ = nullptr;  // the last forward's: backward reads them, too
};

class StandIn final : public engine::Accelerator {
 public:
  explicit StandIn(const engine::AcceleratorOptions& options)
      : options_(options), name_("Stand-in (device " + std::to_string(options.device) + ")") {}

  std::string_view device() const override { return name_; }
  std::string_view library() const override { return "stand-in 1.0, driver 2.0"; }
  engine::DeviceMemory memory() const override {
    if (options_.device == 2 || space_.dead()) throw std::runtime_error("standInMemGetInfo: device lost");
    return {std::uint64_t{8} << 30, std::uint64_t{options_.device == 1 ? 1u : 8192u} << 20};
  }
  kernels::MemorySpace& space() override { return space_; }
  Result<std::unique_ptr<engine::Engine>> make_engine(const engine::Model& model,
                                                      const engine::EngineOptions& options) override {
    auto made = engine::make_cpu_engine(model, options);
    if (!made.ok()) return made.error();
    if (options_.device == 3) space_.die_after(kCallsOfALife);
    return std::unique_ptr<engine::Engine>(
        std::make_unique<StandInEngine>(std::move(made).value(), space_, options_.math));
  }

 private:
  const engine::AcceleratorOptions options_;
  const std::string name_;
  AwkwardMemory space_{*kernels::available().back()};
};

}  // namespace
}  // namespace tg::tests

extern "C" const char* tgd_module_build() {
  static const std::string build = tg::schema::build_id();
  return build.c_str();
}

extern "C" tg::engine::Accelerator* tgd_open_module(const tg::engine::AcceleratorOptions& options, std::string& why) {
  if (options.device <= 3) return new tg::tests::StandIn(options);  // for as long as the process lives
  why = "there is no device " + std::to_string(options.device) + ": this machine has 4, counted from 0; set device";
  return nullptr;
}
