#include "engine/micro_batches.h"

#include <algorithm>
#include <utility>

#include "kernels/home_array.h"

namespace tg::engine {
namespace {

class MicroBatches final : public Engine {
 public:
  MicroBatches(std::unique_ptr<Engine> engine, kernels::Home& home, const MicroBatchOptions& options)
      : engine_(std::move(engine)),
        options_(options),
        parts_(options.batch / options.micro_batch),
        tensors_(home.make_kernels()),
        sum_(home, parts_ > 1 ? segments().padded_count() : 0),
        part_gradient_(home, parts_ > 2 ? segments().padded_count() : 0),
        measured_(statistics().padded_count()),
        part_measured_(statistics().padded_count()) {
    TG_CHECK(parts_ * options.micro_batch == options.batch, options.batch, options.micro_batch);
  }

  const SegmentTable& segments() const override { return engine_->segments(); }
  const SegmentTable& statistics() const override { return engine_->statistics(); }
  using Engine::forward;
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override;
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  void prefetch(const Batch& next) override { prefetch_part(next, 0); }
  void forget_prefetch() override { engine_->forget_prefetch(); }
  void read_statistics(float* measured) const override;
  using Engine::evaluate;
  EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch) override {
    return engine_->evaluate(parameters, statistics, batch);
  }
  std::string build() const override { return engine_->build(); }
  std::string choices() const override { return engine_->choices(); }
  std::size_t activation_bytes() const override {
    return engine_->activation_bytes() + (sum_.size() + part_gradient_.size()) * sizeof(float);
  }

 private:
  void take_part(const Batch& batch, int part);
  void prefetch_part(const Batch& batch, int part) {
    take_part(batch, part);
    engine_->prefetch(samples_[next_]);
  }
  void add_gradient(const Batch& batch, int part);
  void add_statistics(int part);
  // Adds factor * what to target, for segments [first, last).
  void add(kernels::ConstFloats what, float factor, kernels::Floats target, std::size_t first, std::size_t last) {
    const std::size_t begin = segments()[first].offset;
    const std::size_t count = segments()[last - 1].offset + segments()[last - 1].padded_count() - begin;
    tensors_->add_scaled(what.subspan(begin, count), factor, target.subspan(begin, count));
  }

  const std::unique_ptr<Engine> engine_;
  const MicroBatchOptions options_;
  const int parts_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  kernels::HomeArray sum_, part_gradient_;  // the sum of all parts before the last, and one part's
  AlignedArray<float> measured_, part_measured_;
  // Views into the batch's memory: the part of the engine's last forward, and the next one.
  Batch samples_[2];
  std::size_t next_ = 0;
};

// Makes the next part for the engine. It may have been made before, for the prefetch.
void MicroBatches::take_part(const Batch& batch, int part) {
  const std::size_t elements = batch.images.size() / static_cast<std::size_t>(batch.count);
  const auto count = static_cast<std::size_t>(options_.micro_batch), first = static_cast<std::size_t>(part) * count;
  Batch& taken = samples_[next_];
  taken.count = options_.micro_batch;
  taken.first_position = batch.first_position + first;
  taken.images = batch.images.part(first * elements, count * elements);
  taken.labels.assign(batch.labels.begin() + static_cast<std::ptrdiff_t>(first),
                      batch.labels.begin() + static_cast<std::ptrdiff_t>(first + count));
}

double MicroBatches::forward(const float* parameters, const Batch& batch, const SegmentGate& gate) {
  TG_CHECK(batch.count == options_.batch, batch.count, options_.batch);
  double loss = 0;
  for (int part = 0; part < parts_; ++part) {
    take_part(batch, part);
    const Batch& taken = samples_[std::exchange(next_, 1 - next_)];
    loss += engine_->forward(parameters, taken, part == 0 ? gate : SegmentGate());
    add_statistics(part);
    if (part + 1 < parts_) add_gradient(batch, part);
    options_.advanced();
  }
  return loss;
}

void MicroBatches::add_gradient(const Batch& batch, int part) {
  const kernels::Floats target = (part == 0 ? sum_ : part_gradient_).floats();
  bool begun = false;
  engine_->backward(1, target.address(), [&](std::size_t first, std::size_t last) {
    if (!std::exchange(begun, true)) prefetch_part(batch, part + 1);
    if (part > 0) add(part_gradient_.floats(), 1, sum_.floats(), first, last);
  });
}

void MicroBatches::add_statistics(int part) {
  if (measured_.size() == 0) return;
  engine_->read_statistics(part == 0 ? measured_.data() : part_measured_.data());
  if (part == 0) return;
  for (std::size_t i = 0; i < measured_.size(); ++i) measured_[i] += part_measured_[i];
}

void MicroBatches::backward(float factor, float* gradients, const SegmentSink& sink) {
  const kernels::Floats target{gradients, segments().padded_count()};
  engine_->backward(factor, gradients, [&](std::size_t first, std::size_t last) {
    if (parts_ > 1) add(std::as_const(sum_).floats(), factor, target, first, last);
    sink(first, last);
  });
  samples_[1 - next_] = {};  // its batch may be destroyed now
}

void MicroBatches::read_statistics(float* measured) const {
  for (const Segment& segment : statistics().segments())
    for (std::size_t i = segment.offset; i < segment.offset + segment.element_count; ++i)
      measured[i] = measured_[i] / static_cast<float>(parts_);
}

}  // namespace

std::uint64_t micro_batch_bytes(const Model& model, int batch, int micro_batch) {
  return static_cast<std::uint64_t>(std::min(batch / micro_batch - 1, 2)) * model.segments.padded_count() *
         sizeof(float);
}

std::unique_ptr<Engine> make_micro_batches(std::unique_ptr<Engine> engine, kernels::Home& home,
                                           const MicroBatchOptions& options) {
  return std::make_unique<MicroBatches>(std::move(engine), home, options);
}

}  // namespace tg::engine
