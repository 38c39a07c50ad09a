#include "engine/cpu/windows.h"
#include "engine/cuda/operators/images.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

// The spans along one side, on the device.
class SpansOnDevice {
 public:
  SpansOnDevice(Library& library, const std::vector<cpu::Span>& spans)
      : count_(spans.size()), values_(2 * spans.size()) {
    std::vector<int> values(2 * count_);
    for (std::size_t i = 0; i < count_; ++i) {
      values[i] = static_cast<int>(spans[i].first);
      values[count_ + i] = static_cast<int>(spans[i].last);
    }
    TG_CUDA(cudaMemcpyAsync(values_.data(), values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice,
                            library.compute()));
    library.wait();
  }
  Spans spans() const { return {values_.data(), values_.data() + count_}; }

 private:
  std::size_t count_;
  kernels::cuda::DeviceArray<int> values_;  // all first, all last
};

class AverageStage final : public Stage {
 public:
  AverageStage(const StageContext& context, const std::vector<cpu::Span>& rows, const std::vector<cpu::Span>& columns)
      : Stage(context),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        wanted_(context.wants(0)),
        rows_(library_, rows),
        columns_(library_, columns),
        shape_{context.batch * input_.shape.channels,
               {input_.shape.height, input_.shape.width},
               {output_.shape.height, output_.shape.width},
               rows_.spans(),
               columns_.spans()} {}

  void forward(const Pass& /*pass*/) override {
    average(shape_, input_.value.floats(), output_.value.floats(), library_.compute());
  }
  void backward_data(const Pass& /*pass*/) override {
    if (wanted_) average_gradient(shape_, output_.gradient.floats(), input_.gradient.floats(), library_.compute());
  }

 private:
  Library& library_;
  const Activation input_, output_;
  const bool wanted_;
  const SpansOnDevice rows_, columns_;
  const AverageShape shape_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const AdaptiveAverage& /*layer*/) {
  const ImageShape &from = context.inputs[0].shape, &to = context.output.shape;
  return std::make_unique<AverageStage>(context, cpu::adaptive_spans(from.height, to.height),
                                        cpu::adaptive_spans(from.width, to.width));
}

}  // namespace tg::engine::cuda
