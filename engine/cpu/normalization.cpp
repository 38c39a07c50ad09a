#include <omp.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/cpu/lrn/lrn.h"
#include "engine/cpu/operator.h"

namespace tg::engine::cpu {
namespace {

constexpr float kBeta = 0.75F;  // the one exponent that lrn.h has

// The best variant that oneDNN's own choice allows: ONEDNN_MAX_CPU_ISA limits all operators of an engine alike.
const lrn::Kernels& choose_kernels() {
  const auto allowed = [isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa())](std::string_view name) {
    const auto has = [isa](dnnl::cpu_isa least) {
      return (isa & static_cast<unsigned>(least)) == static_cast<unsigned>(least);
    };
    if (name == "avx512") return has(dnnl::cpu_isa::avx512_core);
    return name != "avx2" || has(dnnl::cpu_isa::avx2);
  };
  const auto& variants = lrn::available();
  return **std::find_if(variants.begin(), variants.end(),
                        [&](const lrn::Kernels* each) { return allowed(each->name); });
}

lrn::Window window_of(const OperatorContext& context, const LocalResponseNormalization& layer) {
  if (layer.beta != kBeta) {
    throw std::runtime_error(context.name + " has beta " + std::to_string(layer.beta) +
                             "; this engine normalizes with beta 0.75 only");
  }
  const auto channels = static_cast<std::size_t>(context.input.value.get_desc().dims()[1]);
  return {channels, static_cast<std::size_t>(layer.radius), layer.bias, layer.alpha};
}

float* values_of(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }

// Pixels are rows, shared out among as many threads as oneDNN has; none depends on another.
class NormalizationOperator final : public Operator {
 public:
  NormalizationOperator(const OperatorContext& context, const LocalResponseNormalization& layer)
      : window_(window_of(context, layer)),
        kernels_(choose_kernels()),
        input_(context.input),
        wanted_(context.training && context.input_wants),
        threads_(omp_get_max_threads()),
        scratch_(static_cast<std::size_t>(threads_) * lrn::scratch_floats(window_)) {
    const dnnl::memory::desc desc = input_.value.get_desc();
    rows_ = desc.get_size() / sizeof(float) / window_.channels;
    output_ = make_activation(context, desc);
    context.device.note_implementation(context.name, (std::string("lrn:") + kernels_.name).c_str());
  }

  void forward(const float* /*parameters*/) override {
    const float* const x = values_of(input_.value);
    float* const y = values_of(output_.value);
    share_out([&](std::size_t first, std::size_t count, float* scratch) {
      const std::size_t at = first * window_.channels;
      kernels_.forward(window_, {count, x + at, y + at}, scratch);
    });
  }

  void backward_data() override {
    if (!wanted_) return;
    const float *const x = values_of(input_.value), *const dy = values_of(output_.gradient);
    float* const dx = values_of(input_.gradient);
    share_out([&](std::size_t first, std::size_t count, float* scratch) {
      const std::size_t at = first * window_.channels;
      kernels_.backward(window_, {count, x + at, dy + at, dx + at}, scratch);
    });
  }

 private:
  template <class Part>
  void share_out(const Part& part) {
#pragma omp parallel num_threads(threads_)
    {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      const auto team = static_cast<std::size_t>(omp_get_num_threads());
      const std::size_t first = rows_ * thread / team, last = rows_ * (thread + 1) / team;
      part(first, last - first, scratch_.data() + thread * lrn::scratch_floats(window_));
      parts_done_.fetch_add(1, std::memory_order_release);
    }
    parts_done_.load(std::memory_order_acquire);
  }

  const lrn::Window window_;
  const lrn::Kernels& kernels_;
  const Activation input_;
  const bool wanted_;
  const int threads_;
  AlignedArray<float> scratch_;
  std::size_t rows_ = 0;
  std::atomic<unsigned> parts_done_ = 0;  // what OpenMP's barrier says already, in a form that a thread sanitizer sees
};

}  // namespace

std::unique_ptr<Operator> make_normalization(const OperatorContext& context, const LocalResponseNormalization& layer) {
  return std::make_unique<NormalizationOperator>(context, layer);
}

}  // namespace tg::engine::cpu
