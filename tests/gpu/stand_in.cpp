#include <algorithm>
#include <bit>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/host_memory_space.h"
#include "tests/gpu/report.h"
#include "tests/gpu/subject.h"

namespace tg::gpu {
namespace {

using namespace kernels;

constexpr const char* kFaults[] = {"copy",    "statistics",       "ternarize", "apply",    "add-scaled",
                                   "average", "digest",           "loss",      "gradient", "padding",
                                   "early",   "repeat",           "dropout",   "order",    "evaluation",
                                   "gate",    "batch-statistics", "limit",     "doubled",  "factor",
                                   "thread",  "rounding",         "lost"};
constexpr float kHundredthMore = 1.01F;

void flip(float& value) { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1); }
void flip_last(const Floats& floats) {
  if (floats.size() > 0) flip(floats.address()[floats.size() - 1]);
}

class FaultyKernels final : public TensorKernels {
 public:
  FaultyKernels(std::unique_ptr<TensorKernels> right, std::string fault)
      : right_(std::move(right)), fault_(std::move(fault)) {}

  void copy_in(std::span<const std::byte> from, Floats to) override {
    right_->copy_in(from, to);
    if (fault_ == "copy") flip_last(to);
  }
  void copy_out(ConstFloats from, std::span<std::byte> to) override { right_->copy_out(from, to); }
  void statistics(std::span<const ConstFloats> slices, std::span<Statistics> results) override {
    right_->statistics(slices, results);
    if (fault_ != "statistics" || results.empty()) return;
    double& sum = results.back().sum;
    sum = std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) ^ 1);
  }
  void ternarize(ConstFloats gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                 Planes codes) override {
    right_->ternarize(gradient, first, key, scale, codes);
    if (fault_ == "ternarize" && !codes.nonzero.empty()) codes.nonzero.back() ^= 1;
  }
  void apply_sums(const Update& update, std::span<const std::int8_t> sums, const ConstStateFloats& from,
                  const StateFloats& to) override {
    right_->apply_sums(update, sums, from, to);
    if (fault_ == "apply") flip_last(to.parameters);
  }
  void apply_floats(const Update& update, std::span<const float> sums, const ConstStateFloats& from,
                    const StateFloats& to) override {
    right_->apply_floats(update, sums, from, to);
    if (fault_ == "apply") flip_last(to.parameters);
  }
  void apply_planes(const Update& update, std::span<const ConstPlanes> codes, const ConstStateFloats& from,
                    const StateFloats& to) override {
    right_->apply_planes(update, codes, from, to);
    if (fault_ == "apply") flip_last(to.parameters);
  }
  void add_scaled(ConstFloats parameters, float factor, Floats gradient) override {
    right_->add_scaled(parameters, factor, gradient);
    if (fault_ == "add-scaled") flip_last(gradient);
  }
  void average(ConstFloats parameters, float rate, Floats average) override {
    right_->average(parameters, rate, average);
    if (fault_ == "average") flip_last(average);
  }
  std::uint64_t digest(ConstFloats values, std::uint64_t first, std::uint64_t salt) override {
    return right_->digest(values, first, salt) ^ (fault_ == "digest" ? 1 : 0);
  }

 private:
  const std::unique_ptr<TensorKernels> right_;
  const std::string fault_;
};

class FaultyMemorySpace final : public MemorySpace {
 public:
  explicit FaultyMemorySpace(std::string fault) : host_(*available().front()), fault_(std::move(fault)) {}
  std::string_view name() const override { return host_.name(); }
  std::unique_ptr<TensorKernels> make_kernels() override {
    return std::make_unique<FaultyKernels>(host_.make_kernels(), fault_);
  }
  Floats allocate(std::size_t count) override { return host_.allocate(count); }
  void release(Floats floats) override { host_.release(floats); }

 private:
  HostMemorySpace host_;
  const std::string fault_;
};

class FaultyEngine final : public engine::Engine {
 public:
  // bits: of a parameter's significand that are read, the leading one aside.
  FaultyEngine(std::unique_ptr<engine::Engine> right, std::string fault, int bits, std::string choices)
      : right_(std::move(right)),
        fault_(std::move(fault)),
        choices_(std::move(choices)),
        bits_(bits),
        rounded_(segments().padded_count()) {}

  const engine::SegmentTable& segments() const override { return right_->segments(); }
  const engine::SegmentTable& statistics() const override { return right_->statistics(); }
  double forward(const float* parameters, const engine::Batch& batch, const SegmentGate& gate) override {
    if (bits_ < kFloatBits) {  // in a backward pass these are read again
      if (gate) gate(0, segments().size());
      return right_->forward(rounded(parameters), batch, {});
    }
    double loss = 0;
    if (fault_ == "gate" && gate) {
      loss = right_->forward(parameters, batch, {});
      gate(0, segments().size());
    } else {
      loss = right_->forward(parameters, batch, gate);
    }
    return fault_ == "loss" ? loss * kHundredthMore : loss;
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    std::vector<std::pair<std::size_t, std::size_t>> told;
    const auto later = [&](std::size_t first, std::size_t last) { told.emplace_back(first, last); };
    if (fault_ == "early") sink(0, segments().size());
    const bool held = fault_ == "early" || fault_ == "order";
    right_->backward(
        fault_ == "factor" ? 1 : factor, gradients,
        held ? SegmentSink(later) : [&](std::size_t first, std::size_t last) {
          spoil(gradients, first, last);
          sink(first, last);
        });
    if (fault_ == "order") {
      std::reverse(told.begin(), told.end());
      for (const auto& [first, last] : told) sink(first, last);
    }
  }
  void read_statistics(float* measured) const override {
    right_->read_statistics(measured);
    if (fault_ == "batch-statistics" && statistics().size() > 0) measured[0] *= kHundredthMore;
  }
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics, const engine::Batch& batch,
                                    std::span<float> logits) override {
    engine::EvaluationCounts counts =
        right_->evaluate(bits_ < kFloatBits ? rounded(parameters) : parameters, statistics, batch, logits);
    if (fault_ == "evaluation") counts.loss_sum *= kHundredthMore;
    return counts;
  }
  std::string build() const override { return right_->build(); }
  std::string choices() const override { return choices_; }
  std::size_t activation_bytes() const override { return right_->activation_bytes(); }

 private:
  static constexpr int kFloatBits = 23;
  const float* rounded(const float* parameters) {
    const std::uint32_t half = 1U << (kFloatBits - 1 - bits_);
    for (std::size_t i = 0; i < rounded_.size(); ++i)
      rounded_[i] = std::bit_cast<float>((std::bit_cast<std::uint32_t>(parameters[i]) + half) & ~(2 * half - 1));
    return rounded_.data();
  }
  void spoil(float* gradients, std::size_t first, std::size_t last) {
    const engine::Segment& segment = segments()[last - 1];
    float* const begin = gradients + segment.offset;
    if (fault_ == "gradient")
      for (std::size_t i = 0; i < segment.element_count; ++i) begin[i] *= kHundredthMore;
    if (fault_ == "doubled")
      for (float* at = gradients + segments()[first].offset; at < begin + segment.padded_count(); ++at) *at *= 2;
    if (fault_ == "thread" && std::this_thread::get_id() != made_by_) flip(*begin);
    if (fault_ == "padding" && segment.padded_count() > segment.element_count) begin[segment.element_count] = 1;
    if (fault_ == "repeat" && first == 0 && ++backwards_ % 3 == 0) flip(*begin);
  }

  const std::unique_ptr<engine::Engine> right_;
  const std::string fault_, choices_;
  const int bits_;
  AlignedArray<float> rounded_;
  const std::thread::id made_by_ = std::this_thread::get_id();
  int backwards_ = 0;
};

// Bits of a significand, by arithmetic; a fault keeps fewer.
int bits_of(engine::Math math, bool fewer) {
  switch (math) {
    case engine::Math::kFp32:
      return fewer ? 10 : 23;
    case engine::Math::kTf32:
      return fewer ? 3 : 10;
    case engine::Math::kBf16:
      return fewer ? 2 : 7;
  }
  return 0;
}

class StandIn final : public engine::Accelerator {
 public:
  StandIn(const std::string& fault, engine::Math math)
      : space_(fault), fault_(fault), bits_(bits_of(math, fault == "rounding")) {}
  std::string_view device() const override { return "the host"; }
  std::string_view library() const override { return library_; }
  engine::DeviceMemory memory() const override { return {}; }
  MemorySpace& space() override { return space_; }
  Result<std::unique_ptr<engine::Engine>> make_engine(const engine::Model& model,
                                                      const engine::EngineOptions& options) override {
    engine::EngineOptions own = options;  // one thread; the reference has more: sums in another order, as on a device
    if (fault_ == "dropout") ++own.seed;
    if (fault_ == "limit") own.most_activation_bytes = 0;
    if (fault_ == "lost") return Error{ErrorKind::kFailed, "cudaEventQuery: an illegal address; restart tgd"};
    const std::string given = std::exchange(own.choices, {});
    auto made = engine::make_cpu_engine(model, own);
    if (!made) return made.error();
    return std::unique_ptr<engine::Engine>(std::make_unique<FaultyEngine>(
        std::move(made).value(), fault_, bits_, given.empty() ? text("timed %d", ++timed_) : given));
  }

 private:
  FaultyMemorySpace space_;
  const std::string fault_;
  const int bits_;
  int timed_ = 0;  // engines that were given no choices
  const std::string library_ = engine::cpu_library();
};

}  // namespace

std::unique_ptr<engine::Accelerator> make_stand_in(const std::string& fault, engine::Math math) {
  if (!fault.empty() && std::find(std::begin(kFaults), std::end(kFaults), fault) == std::end(kFaults))
    throw std::runtime_error("there is no fault " + fault);
  return std::make_unique<StandIn>(fault, math);
}

}  // namespace tg::gpu
