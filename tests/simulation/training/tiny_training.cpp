#include "tests/simulation/training/tiny_training.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "engine/dataset.h"
#include "tests/plain/floats.h"
#include "tests/plain/ternary.h"
#include "tests/simulation/simulator/random.h"

namespace tg::simulation {
namespace {

engine::Segment segment(std::string name, std::vector<std::int64_t> shape, bool last_layer) {
  engine::Segment one;
  one.name = std::move(name);
  one.element_count = 1;
  for (const std::int64_t size : shape) one.element_count *= static_cast<std::size_t>(size);
  one.initial_deviation = shape.size() > 1 ? 0.1 : 0;
  one.initial_value = 0.25;
  one.decays = shape.size() > 1;
  one.last_layer = last_layer;
  one.shape = std::move(shape);
  return one;
}

const kernels::Kernels& scalar() { return *kernels::available().back(); }

using schema::GradientFormat;

GradientFormat format_of(const schema::JobSpec& job, std::size_t s, std::uint64_t step) {
  const engine::Segment& one = tiny_segments()[s];
  if (job.gradients != GradientFormat::kTernary) return job.gradients;
  if (step < job.float_steps || one.element_count < job.min_ternary_size) return GradientFormat::kFloat32;
  return one.last_layer ? schema::resolved_last_layer(job) : GradientFormat::kTernary;
}

// The rule by which a segment's gradients become one.
std::unique_ptr<plain::SegmentRule> rule_of(const schema::JobSpec& job, std::size_t s, std::uint64_t step) {
  const GradientFormat format = format_of(job, s, step);
  if (format != GradientFormat::kTernary) return std::make_unique<plain::Floats>(format == GradientFormat::kFloat16);
  return std::make_unique<plain::TernGrad>(plain::TernaryOptions{
      .clip_sigma = static_cast<float>(job.clip_sigma), .shared = job.scaler_sharing == schema::ScalerSharing::kMax});
}

}  // namespace

// The two normalizations follow at different rates; the second is longer than a block.
const engine::Model& tiny_model() {
  static const engine::Model model = [] {
    engine::Model made;
    made.name = "tiny";
    made.segments = engine::SegmentTable({segment("conv1.weight", {8, 3, 5, 5}, false),
                                          segment("conv1.bias", {8}, false), segment("fc1.weight", {40, 100}, false),
                                          segment("fc1.bias", {40}, false), segment("fc2.weight", {10, 40}, true)});
    made.statistics =
        engine::SegmentTable({segment("bn1.running_mean", {8}, false), segment("bn1.running_var", {8}, false),
                              segment("bn2.running_mean", {600}, false), segment("bn2.running_var", {600}, false)});
    made.operators = {{"bn1", engine::BatchNormalization{.momentum = 0.1F, .mean = 0, .variance = 1}, {}},
                      {"bn2", engine::BatchNormalization{.momentum = 0.03F, .mean = 2, .variance = 3}, {}}};
    return made;
  }();
  return model;
}

const engine::SegmentTable& tiny_segments() { return tiny_model().segments; }

std::vector<std::string> tiny_segment_names() {
  std::vector<std::string> names;
  for (const engine::Segment& one : tiny_segments().segments()) names.push_back(one.name);
  return names;
}

void draw_gradient(std::uint64_t seed, std::size_t rank, std::uint64_t step, std::span<float> gradient) {
  Random random(seed * 1'000'003 + rank * 1'009 + step);
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  float size = 4.0f;
  for (const engine::Segment& one : tiny_segments().segments()) {
    size *= 0.127f;  // no power of two: the elements fill their mantissas, so that the order of a float sum shows
    if (random.one_in(13)) continue;
    for (std::size_t i = 0; i < one.element_count; ++i) {
      const std::uint64_t word = random.word();  // four numbers in one, summed to a bell
      const std::uint64_t sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
      gradient[one.offset + i] = size * (static_cast<float>(sum) * 0x1p-16f - 2.0f);
    }
  }
}

double draw_loss(std::uint64_t seed, std::size_t rank, std::uint64_t step) {
  return Random(seed + 31 * rank + 1'000 * step).unit();
}

std::vector<float> draw_statistics(std::uint64_t seed, std::size_t rank, std::uint64_t step) {
  Random random(seed * 1'000'033 + rank * 1'013 + step);
  std::vector<float> values(tiny_model().statistics.parameter_count());
  for (float& value : values) value = static_cast<float>(3 * random.unit() - 1);
  return values;
}

// The members' shares of the batch.
static std::vector<float> reference_shares(const ReferenceView& view, std::uint64_t batch) {
  std::vector<float> shares;
  for (const engine::Share& part : engine::split(batch, view.weights))
    shares.push_back(static_cast<float>(static_cast<double>(part.count) / static_cast<double>(batch)));
  return shares;
}

// Element by element, in the order of ranks.
static void follow_reference(const schema::JobSpec& job, const ReferenceView& view, std::uint64_t batch,
                             std::uint64_t step, AlignedArray<float>& statistics) {
  const std::size_t members = view.seats.size();
  const std::vector<float> shares = reference_shares(view, batch);
  std::vector<std::vector<float>> measured;
  for (const std::size_t seat : view.seats) measured.push_back(draw_statistics(job.seed, seat, step));
  std::size_t at = 0;
  for (std::size_t s = 0; s < tiny_model().statistics.size(); ++s) {
    const engine::Segment& one = tiny_model().statistics[s];
    const float momentum = s < 2 ? 0.1F : 0.03F;
    for (std::size_t i = 0; i < one.element_count; ++i, ++at) {
      float mean = 0;
      for (std::size_t rank = 0; rank < members; ++rank) mean = mean + shares[rank] * measured[rank][at];
      float& running = statistics[one.offset + i];
      running = running + momentum * (mean - running);
    }
  }
}

static engine::OptimizerOptions reference_optimizer(const schema::JobSpec& job) {
  engine::OptimizerOptions options;
  options.kind = job.optimizer;
  options.schedule.base_rate = job.learning_rate;
  options.schedule.steps = job.steps;
  options.momentum = job.momentum;
  return options;
}

ReferenceState train_reference(const schema::JobSpec& job, std::size_t members, std::uint64_t steps) {
  ReferenceView all;
  for (std::size_t seat = 0; seat < members; ++seat) all.seats.push_back(seat);
  all.weights.assign(members, 1);
  return train_reference(job, std::vector<ReferenceView>(steps, all), schema::resolved_global_batch(job, members));
}

ReferenceState train_reference(const schema::JobSpec& job, const std::vector<ReferenceView>& views_by_step,
                               std::uint64_t global_batch) {
  const engine::SegmentTable& segments = tiny_segments();
  const std::size_t size = segments.padded_count();
  const engine::OptimizerOptions optimizer = reference_optimizer(job);
  ReferenceState state{AlignedArray<float>(size),
                       AlignedArray<float>(size),
                       AlignedArray<float>(size),
                       AlignedArray<float>(size),
                       AlignedArray<float>(tiny_model().statistics.padded_count()),
                       0};
  engine::initialize(segments, job.seed, state.parameters.data());
  engine::initialize(tiny_model().statistics, job.seed, state.statistics.data());
  std::copy(state.parameters.begin(), state.parameters.end(), state.average.begin());
  ReferenceState next{AlignedArray<float>(size), AlignedArray<float>(size), AlignedArray<float>(size), {}, {}, 0};
  for (std::uint64_t step = 0; step < views_by_step.size(); ++step) {
    const ReferenceView& view = views_by_step[step];
    const plain::Round round{scalar(), job.seed, static_cast<std::uint32_t>(step), false, view.seats};
    std::vector<AlignedArray<float>> gradients;
    for (const std::size_t seat : view.seats) {
      gradients.emplace_back(size);
      draw_gradient(job.seed, seat, step, gradients.back().span());
    }
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::size_t begin = segments[s].offset, count = segments[s].padded_count();
      const kernels::ConstStateSpan from{state.parameters.span().subspan(begin, count),
                                         state.slot0.span().subspan(begin, count),
                                         state.slot1.span().subspan(begin, count)};
      const kernels::StateSpan to{next.parameters.span().subspan(begin, count), next.slot0.span().subspan(begin, count),
                                  next.slot1.span().subspan(begin, count)};
      kernels::Update update = engine::update_for_step(optimizer, step);
      std::vector<std::span<const float>> parts;
      for (const AlignedArray<float>& gradient : gradients) parts.push_back(gradient.span().subspan(begin, count));
      AlignedArray<float> mean(count);
      rule_of(job, s, step)->one(round, s, segments[s], parts, mean.span());
      for (const float value : mean) state.nonzero_means += value != 0 ? 1 : 0;
      update.scale = 1;
      scalar().apply_floats(update, mean.span(), from, to);
    }
    follow_reference(job, view, global_batch, step, state.statistics);
    std::swap(state.parameters, next.parameters);
    std::swap(state.slot0, next.slot0);
    std::swap(state.slot1, next.slot1);
    if (job.ema > 0)
      scalar().average(state.parameters.span(), engine::average_rate(job.ema, step + 1), state.average.span());
    else
      std::copy(state.parameters.begin(), state.parameters.end(), state.average.begin());
  }
  return state;
}

std::string difference(const ReferenceState& reference, const daemon::Replica& replica) {
  const auto compare = [&](std::string_view what, std::span<const float> expected, kernels::ConstFloats found) {
    std::vector<float> actual(expected.size());
    replica.copy_out(found, 0, actual);
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(actual[i]))
        return std::string(what) + " " + std::to_string(i) + ": " + std::to_string(expected[i]) + " expected, " +
               std::to_string(actual[i]) + " found";
    return std::string();
  };
  std::string text = compare("parameter", reference.parameters.span(), replica.parameters());
  if (text.empty() && replica.slot_count() > 0) text = compare("slot 0 of", reference.slot0.span(), replica.slot(0));
  if (text.empty() && replica.slot_count() > 1) text = compare("slot 1 of", reference.slot1.span(), replica.slot(1));
  if (text.empty()) text = compare("average", reference.average.span(), replica.average());
  const std::span<const float> statistics = replica.statistics();
  for (std::size_t i = 0; i < statistics.size() && text.empty(); ++i)
    if (std::bit_cast<std::uint32_t>(statistics[i]) != std::bit_cast<std::uint32_t>(reference.statistics[i]))
      text = "statistic " + std::to_string(i) + ": " + std::to_string(reference.statistics[i]) + " expected, " +
             std::to_string(statistics[i]) + " found";
  return text;
}

}  // namespace tg::simulation
