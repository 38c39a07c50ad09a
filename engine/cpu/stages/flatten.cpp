#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

class FlattenStage final : public Stage {
 public:
  explicit FlattenStage(const StageContext& context) : Stage(context) {
    const Activation& input = context.inputs[0];
    // A row's bytes, seen as an image in C, H, W order.
    const memory::desc image(input.value.get_desc().dims(), memory::data_type::f32, memory::format_tag::nchw);
    forward_ = Operation::make_reorder(context.library, context.name() + " forward", input.value,
                                       context.arena.view(context.output.value, image));
    if (!context.wants(0)) return;
    backward_ = Operation::make_reorder(context.library, context.name() + " backward",
                                        context.arena.view(context.output.gradient, image), input.gradient);
  }

  void forward(const Pass& /*pass*/) override { forward_.run(); }
  void backward_data(const Pass& /*pass*/) override { backward_.run(); }

 private:
  Operation forward_, backward_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Flatten& /*layer*/) {
  return std::make_unique<FlattenStage>(context);
}

}  // namespace tg::engine::cpu
