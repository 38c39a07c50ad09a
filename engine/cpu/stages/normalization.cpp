#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/cpu/lrn/lrn.h"
#include "engine/cpu/stages/stage.h"
#include "engine/cpu/team.h"

namespace tg::engine::cpu {
namespace {

constexpr float kBeta = 0.75F;  // the only exponent of lrn.h

// The best variant within oneDNN's own limit, so that ONEDNN_MAX_CPU_ISA limits all operators of an engine alike.
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

// A row is a pixel's channels, or a group of them.
lrn::Window window_of(const StageContext& context, const LocalResponseNormalization& layer) {
  if (layer.beta != kBeta) {
    throw std::runtime_error(context.name() + " has beta " + std::to_string(layer.beta) +
                             "; this engine normalizes with beta 0.75 only");
  }
  const auto channels = static_cast<std::size_t>(context.inputs[0].value.get_desc().dims()[1]);
  return {channels / static_cast<std::size_t>(layer.groups), static_cast<std::size_t>(layer.radius), layer.bias,
          layer.alpha};
}

// The threads share the rows; none depends on another.
class NormalizationStage final : public Stage {
 public:
  NormalizationStage(const StageContext& context, const LocalResponseNormalization& layer)
      : Stage(context),
        window_(window_of(context, layer)),
        kernels_(choose_kernels()),
        input_(context.inputs[0]),
        output_(context.output),
        wanted_(context.wants(0)),
        scratch_(team_.size() * lrn::scratch_floats(window_)),
        rows_(float_count(input_.value) / window_.channels) {
    context.library.note_implementation(context.name(), (std::string("lrn:") + kernels_.name).c_str());
  }

  void forward(const Pass& /*pass*/) override {
    const float* const x = floats_of(input_.value);
    float* const y = floats_of(output_.value);
    share_out([&](std::size_t first, std::size_t count, float* scratch) {
      const std::size_t at = first * window_.channels;
      kernels_.forward(window_, {count, x + at, y + at}, scratch);
    });
  }

  void backward_data(const Pass& /*pass*/) override {
    if (!wanted_) return;
    const float *const x = floats_of(input_.value), *const dy = floats_of(output_.gradient);
    float* const dx = floats_of(input_.gradient);
    share_out([&](std::size_t first, std::size_t count, float* scratch) {
      const std::size_t at = first * window_.channels;
      kernels_.backward(window_, {count, x + at, dy + at, dx + at}, scratch);
    });
  }

 private:
  template <class Part>
  void share_out(const Part& part) {
    team_.share_out(rows_, [&](std::size_t first, std::size_t last, std::size_t thread) {
      part(first, last - first, scratch_.data() + thread * lrn::scratch_floats(window_));
    });
  }

  const lrn::Window window_;
  const lrn::Kernels& kernels_;
  const Activation input_, output_;
  const bool wanted_;
  Team team_;
  AlignedArray<float> scratch_;
  const std::size_t rows_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const LocalResponseNormalization& layer) {
  return std::make_unique<NormalizationStage>(context, layer);
}

}  // namespace tg::engine::cpu
