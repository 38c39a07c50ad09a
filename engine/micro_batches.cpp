#include "engine/micro_batches.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "engine/graph/shapes.h"
#include "kernels/memory_array.h"

namespace tg::engine {
namespace {

constexpr std::size_t kMaxLastBuild = 80;  // bytes: a build is one of several in messages of limited length

int part_count(int batch, const PartSizes& sizes) {
  return (batch - sizes.last) / sizes.each + (sizes.last > 0 ? 1 : 0);
}

class MicroBatches final : public Engine {
 public:
  MicroBatches(std::unique_ptr<Engine> engine, std::unique_ptr<Engine> last, kernels::MemorySpace& space,
               const MicroBatchOptions& options)
      : engine_(std::move(engine)),
        last_(std::move(last)),
        options_(options),
        sizes_(part_sizes(options.batch, options.micro_batch, options.least)),
        parts_(part_count(options.batch, sizes_)),
        tensors_(space.make_kernels()),
        sum_(space, parts_ > 1 ? segments().padded_count() : 0),
        part_gradient_(space, parts_ > 2 ? segments().padded_count() : 0),
        measured_(statistics().padded_count()),
        part_measured_(statistics().padded_count()) {
    TG_CHECK((last_ != nullptr) == (sizes_.last > 0), options.batch, options.micro_batch);
  }

  const SegmentTable& segments() const override { return engine_->segments(); }
  const SegmentTable& statistics() const override { return engine_->statistics(); }
  using Engine::forward;
  double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) override;
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  void prefetch(const Batch& next) override {
    forget_last_prefetch();
    prefetch_part(next, 0);
  }
  void forget_prefetch() override {
    engine_->forget_prefetch();
    forget_last_prefetch();
  }
  void read_statistics(float* measured) const override;
  using Engine::evaluate;
  EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch,
                            std::span<float> logits) override {
    return engine_->evaluate(parameters, statistics, batch, logits);
  }
  std::string build() const override;
  std::string choices() const override;
  std::size_t activation_bytes() const override {
    return engine_->activation_bytes() + (last_ ? last_->activation_bytes() : 0) +
           (sum_.size() + part_gradient_.size()) * sizeof(float);
  }

 private:
  Engine& engine_of(int part) const { return last_ && part + 1 == parts_ ? *last_ : *engine_; }
  int samples_of(int part) const { return last_ && part + 1 == parts_ ? sizes_.last : sizes_.each; }
  // A part's weight in the mean over the parts: 1 if all are equal, which leaves every bit.
  int weight_of(int part) const { return last_ ? samples_of(part) : 1; }
  // Only a step that threw has left one.
  void forget_last_prefetch() {
    if (last_) last_->forget_prefetch();
  }
  void take_part(const Batch& batch, int part);
  void prefetch_part(const Batch& batch, int part) {
    take_part(batch, part);
    engine_of(part).prefetch(samples_[next_]);
  }
  void add_gradient(const Batch& batch, int part);
  void add_statistics(int part);
  // Adds factor * what to target, for segments [first, last).
  void add(kernels::ConstFloats what, float factor, kernels::Floats target, std::size_t first, std::size_t last) {
    const std::size_t begin = segments()[first].offset;
    const std::size_t count = segments()[last - 1].offset + segments()[last - 1].padded_count() - begin;
    tensors_->add_scaled(what.subspan(begin, count), factor, target.subspan(begin, count));
  }

  const std::unique_ptr<Engine> engine_, last_;  // last_: null unless the last part is shorter
  const MicroBatchOptions options_;
  const PartSizes sizes_;
  const int parts_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  kernels::MemoryArray sum_, part_gradient_;  // the sum of all parts before the last, and one part's
  AlignedArray<float> measured_, part_measured_;
  // Views into the batch's memory: the part of the last forward, and the next one.
  Batch samples_[2];
  std::size_t next_ = 0;
};

// Makes the next part for the engine. It may have been made before, for the prefetch.
void MicroBatches::take_part(const Batch& batch, int part) {
  const std::size_t elements = batch.images.size() / static_cast<std::size_t>(batch.count);
  const auto count = static_cast<std::size_t>(samples_of(part)), each = static_cast<std::size_t>(sizes_.each),
             first = static_cast<std::size_t>(part) * each;
  Batch& taken = samples_[next_];
  taken.count = samples_of(part);
  taken.first_position = batch.first_position + first;
  taken.images = batch.images.part(first * elements, count * elements);
  taken.labels.assign(batch.labels.begin() + static_cast<std::ptrdiff_t>(first),
                      batch.labels.begin() + static_cast<std::ptrdiff_t>(first + count));
}

double MicroBatches::forward(const float* parameters, const Batch& batch, const SegmentGate& gate) {
  TG_CHECK(batch.count == options_.batch, batch.count, options_.batch);
  forget_last_prefetch();
  double loss = 0;
  for (int part = 0; part < parts_; ++part) {
    take_part(batch, part);
    const Batch& taken = samples_[std::exchange(next_, 1 - next_)];
    loss += engine_of(part).forward(parameters, taken, part == 0 ? gate : SegmentGate());
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
  AlignedArray<float>& taken = part == 0 ? measured_ : part_measured_;
  engine_of(part).read_statistics(taken.data());
  const auto weight = static_cast<float>(weight_of(part));
  for (float& each : taken) each *= weight;
  if (part == 0) return;
  for (std::size_t i = 0; i < measured_.size(); ++i) measured_[i] += taken[i];
}

void MicroBatches::backward(float factor, float* gradients, const SegmentSink& sink) {
  const kernels::Floats target{gradients, segments().padded_count()};
  engine_of(parts_ - 1).backward(factor, gradients, [&](std::size_t first, std::size_t last) {
    if (parts_ > 1) add(std::as_const(sum_).floats(), factor, target, first, last);
    sink(first, last);
  });
  samples_[1 - next_] = {};  // its batch may be destroyed now
}

void MicroBatches::read_statistics(float* measured) const {
  const auto weights = static_cast<float>(last_ ? options_.batch : parts_);
  for (const Segment& segment : statistics().segments())
    for (std::size_t i = segment.offset; i < segment.offset + segment.element_count; ++i)
      measured[i] = measured_[i] / weights;
}

// Adds the items of the last engine's build that the other's lacks: a device's algorithms.
std::string MicroBatches::build() const {
  const std::string each = engine_->build(), last = last_ ? last_->build() : each;
  const std::string told = ", " + each + ", ";
  std::string more;
  for (std::size_t begin = 0, end = 0; begin < last.size(); begin = end + 2) {
    end = std::min(last.find(", ", begin), last.size());
    const std::string item = last.substr(begin, end - begin);
    if (told.find(", " + item + ", ") == told.npos) more += (more.empty() ? "" : ", ") + item;
  }
  return each + (more.empty() ? "" : "; last part: " + more.substr(0, kMaxLastBuild));
}

std::string MicroBatches::choices() const {
  const std::string each = engine_->choices(), last = last_ ? last_->choices() : each;
  if (each == last) return each;
  std::string text = each, line;
  for (std::istringstream lines(last); std::getline(lines, line);)
    text += (text.empty() ? "last part, " : "\nlast part, ") + line;
  return text;
}

}  // namespace

PartSizes part_sizes(int batch, int micro_batch, int least) {
  int each = micro_batch == 0 ? batch : std::min(batch, micro_batch);
  if (batch % each != 1 || each < 2 || least < 2) return {each, batch % each};
  each = std::max(2, each - 1);
  const int last = batch % each == 1 ? each + 1 : batch % each;
  return last == batch ? PartSizes{batch, 0} : PartSizes{each, last};
}

std::string one_pixel_normalization(const Model& model) {
  const Result<std::vector<ImageShape>> shapes = infer_shapes(model);
  for (std::size_t i = 0; shapes.ok() && i < model.operators.size(); ++i) {
    const ImageShape& shape = (*shapes)[i + 1];
    const bool normalizes = std::holds_alternative<BatchNormalization>(model.operators[i].attributes);
    if (normalizes && shape.height * shape.width == 1) return model.operators[i].name;
  }
  return "";
}

std::uint64_t micro_batch_bytes(const Model& model, int batch, int micro_batch) {
  const int least = one_pixel_normalization(model).empty() ? 1 : 2;
  const int parts = part_count(batch, part_sizes(batch, micro_batch, least));
  return static_cast<std::uint64_t>(std::min(parts - 1, 2)) * model.segments.padded_count() * sizeof(float);
}

std::unique_ptr<Engine> make_micro_batches(std::unique_ptr<Engine> engine, kernels::MemorySpace& space,
                                           const MicroBatchOptions& options, std::unique_ptr<Engine> last) {
  return std::make_unique<MicroBatches>(std::move(engine), std::move(last), space, options);
}

}  // namespace tg::engine
