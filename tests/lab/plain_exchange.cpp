#include "tests/lab/plain_exchange.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "engine/optimizer.h"
#include "engine/replay/replay_engine.h"
#include "kernels/host_memory_space.h"
#include "tests/plain/floats.h"
#include "tests/plain/ternary.h"

namespace tg::lab {
namespace {

constexpr std::size_t kSliceElements = 4096;

using Format = schema::GradientFormat;

struct SegmentRule {
  Format format = Format::kTernary;
  std::vector<kernels::Scale> scales;  // by rank
};

const kernels::Kernels& scalar() { return *kernels::available().back(); }

Error invalid(const std::string& message) { return {ErrorKind::kInvalidJob, message}; }

template <class Enum>
Status known(const char* key, Enum value, std::initializer_list<Enum> list) {
  if (std::find(list.begin(), list.end(), value) != list.end()) return {};
  return invalid(std::string("the reference does not know ") + key + " = " + to_word(value));
}

// Only what is known is let through: a value that jobs learn later must not pass for another one.
Status check_job(const schema::JobSpec& job, std::size_t members) {
  using schema::ScalerRecipe, schema::ScalerSharing;
  const std::initializer_list<Format> formats{Format::kTernary, Format::kFloat32, Format::kFloat16};
  for (const Status& status :
       {schema::validate_job(job, members), known("compute", job.compute, {schema::Compute::kReplay}),
        known("optimizer", job.optimizer, {OptimizerKind::kSgd, OptimizerKind::kMomentum}),
        known("schedule", job.schedule, {ScheduleKind::kConstant}), known("gradients", job.gradients, formats),
        known("last-layer", schema::resolved_last_layer(job), formats),
        known("scaler", job.scaler, {ScalerRecipe::kPaper, ScalerRecipe::kRepo}),
        known("scaler-sharing", job.scaler_sharing, {ScalerSharing::kMax, ScalerSharing::kNone})})
    if (!status) return status;
  if (job.float_steps > 0)
    return invalid("the reference does not know float-steps = " + std::to_string(job.float_steps));
  if (job.warm_up > 0) return invalid("the reference does not know warm-up = " + std::to_string(job.warm_up));
  if (!job.freeze.empty()) return invalid("the reference does not know freeze");
  return {};
}

Format format_of(const schema::JobSpec& job, const engine::Segment& segment) {
  if (job.gradients != Format::kTernary) return job.gradients;
  if (segment.element_count < job.min_ternary_size) return Format::kFloat32;
  return segment.last_layer ? schema::resolved_last_layer(job) : Format::kTernary;
}

constexpr float kLargestFloat16 = 65504;

plain::TernaryOptions ternary_options(const schema::JobSpec& job) {
  return {.clip_sigma = static_cast<float>(job.clip_sigma),
          .repo_recipe = job.scaler == schema::ScalerRecipe::kRepo,
          .shared = job.scaler_sharing == schema::ScalerSharing::kMax};
}

// What one member announces of its whole gradient.
Status measure(const schema::JobSpec& job, const engine::SegmentTable& segments, const AlignedArray<float>& gradients,
               std::vector<SegmentRule>& rules) {
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const engine::Segment& segment = segments[s];
    const kernels::Statistics statistics =
        plain::statistics_of(scalar(), gradients.span().subspan(segment.offset, segment.padded_count()));
    rules[s].scales.push_back(plain::announce(ternary_options(job), statistics, segment.element_count));
    if (!statistics.finite) return invalid("the gradient of " + segment.name + " is not finite: a run ends there");
    if (rules[s].format == Format::kFloat16 && statistics.max_abs > kLargestFloat16)
      return invalid("the gradient of " + segment.name + " is too large for float16: a run ends there");
  }
  return {};
}

struct Counts {
  std::vector<std::vector<plain::Histogram>> codes;  // by segment, by rank
  std::vector<plain::Histogram> sums;                // by segment
};

std::vector<float> mean_of_codes(const schema::JobSpec& job, const Slice& slice, const SegmentRule& rule,
                                 std::uint32_t step, Counts& counts) {
  const plain::Round round{scalar(), job.seed, step};
  const plain::TernaryOptions options = ternary_options(job);
  plain::Codes codes(slice.gradients.size(), std::vector<int>(slice.count));
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    plain::ternarize(round, round.key(rank, slice.segment), slice.gradients[rank].span(), slice.first,
                     rule.scales[rank], codes[rank]);
    counts.codes[slice.segment][rank].add(codes[rank]);
  }
  if (options.shared) counts.sums[slice.segment].add(plain::sum_of(codes));
  std::vector<float> mean(slice.count);
  plain::mean_of_codes(options, codes, rule.scales, mean);
  return mean;
}

std::vector<float> mean_of_floats(const Slice& slice, Format format) {
  std::vector<std::span<const float>> gradients;
  for (const AlignedArray<float>& gradient : slice.gradients) gradients.emplace_back(gradient.span());
  std::vector<float> mean(slice.count);
  plain::Floats(format == Format::kFloat16).one({scalar()}, slice.segment, {}, gradients, mean);
  return mean;
}

void update_slice(const schema::JobSpec& job, const kernels::Update& update, float weight_decay,
                  const std::vector<float>& mean, Slice& slice) {
  for (std::size_t i = 0; i < slice.count; ++i) {
    float& w = slice.parameters[i];
    float& v = slice.velocity[i];
    float g = mean[i];
    if (weight_decay != 0) g = g + weight_decay * w;
    if (job.optimizer == OptimizerKind::kMomentum) {
      v = update.momentum * v + g;
      w = w - update.rate * v;
    } else {
      w = w - update.rate * g;
    }
  }
}

Entropies entropies_of(const engine::SegmentTable& segments, const std::vector<SegmentRule>& rules,
                       const Counts& counts, std::size_t members) {
  Entropies entropies;
  entropies.code_bits.resize(members);
  std::vector<double> zeros(members);
  double ternary = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const auto elements = static_cast<double>(segments[s].element_count);
    if (rules[s].format != Format::kTernary) {
      entropies.code_bits_of_floats += (rules[s].format == Format::kFloat16 ? 16 : 32) * elements;
      continue;
    }
    ternary += elements;
    const auto bits_of = [elements](const plain::Histogram& histogram) {
      return histogram.total() == 0 ? 0 : elements * histogram.bits() / static_cast<double>(histogram.total());
    };
    entropies.sum_bits += bits_of(counts.sums[s]);
    for (std::size_t rank = 0; rank < members; ++rank) {
      entropies.code_bits[rank] += bits_of(counts.codes[s][rank]);
      zeros[rank] += elements * counts.codes[s][rank].share(0);
    }
  }
  entropies.sum_bits += entropies.code_bits_of_floats;
  for (double& bits : entropies.code_bits) bits += entropies.code_bits_of_floats;
  for (const double zero : zeros) entropies.zeros.push_back(ternary > 0 ? zero / ternary : 0);
  return entropies;
}

}  // namespace

std::vector<Slice> cut_slices(const engine::SegmentTable& segments, std::size_t most) {
  const double share = most == 0 ? 1 : static_cast<double>(most) / static_cast<double>(segments.parameter_count());
  std::vector<Slice> slices;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t all = (segments[s].element_count + kSliceElements - 1) / kSliceElements;
    const auto wanted = static_cast<std::size_t>(std::ceil(share * static_cast<double>(all)));
    const std::size_t count = std::clamp<std::size_t>(wanted, std::min<std::size_t>(all, 2), all);
    for (std::size_t k = 0; k < count; ++k) {
      // Evenly from the first to the last.
      const std::size_t at = count == 1 ? 0 : k * (all - 1) / (count - 1);
      const std::size_t first = at * kSliceElements;
      slices.push_back({s, first, std::min(kSliceElements, segments[s].element_count - first), {}, {}, {}});
    }
  }
  return slices;
}

Result<PlainRun> run_plainly(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::size_t most_elements) {
  if (const Status known = check_job(job, members); !known.ok()) return known.error();
  const engine::SegmentTable& segments = model.segments;
  PlainRun run;
  run.slices = cut_slices(segments, most_elements);
  std::vector<SegmentRule> rules(segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) rules[s].format = format_of(job, segments[s]);

  AlignedArray<float> flat(segments.padded_count());
  const auto part = [&](const Slice& slice) {
    const float* begin = flat.data() + segments[slice.segment].offset + slice.first;
    return std::vector<float>(begin, begin + slice.count);
  };
  engine::initialize(segments, job.seed, flat.data());
  for (Slice& slice : run.slices) {
    slice.parameters = part(slice);
    slice.velocity.resize(slice.count);
  }
  kernels::HostMemorySpace space(*kernels::available().back());
  for (std::size_t rank = 0; rank < members; ++rank) {
    auto engine = engine::make_replay_engine(
        model, {job.seed, static_cast<std::uint32_t>(rank), job.replay_zeros, job.replay_gradients.value_or("")},
        space);
    if (!engine.ok()) return engine.error();
    std::fill(flat.begin(), flat.end(), 0.0F);
    (*engine)->backward(1, flat.data(), [](std::size_t, std::size_t) {});
    if (const Status fits = measure(job, segments, flat, rules); !fits.ok()) return fits.error();
    for (Slice& slice : run.slices) {
      slice.gradients.emplace_back(kernels::padded(slice.count));
      std::ranges::copy(part(slice), slice.gradients.back().begin());
    }
  }
  for (SegmentRule& rule : rules) plain::share(ternary_options(job), rule.scales);

  Counts counts{std::vector<std::vector<plain::Histogram>>(segments.size(), std::vector<plain::Histogram>(members)),
                std::vector<plain::Histogram>(segments.size())};
  engine::OptimizerOptions optimizer;
  optimizer.kind = job.optimizer;
  optimizer.schedule.base_rate = job.learning_rate;
  optimizer.momentum = job.momentum;
  const auto outside = schema::decays_inside(job) ? 0.0F : static_cast<float>(job.weight_decay);
  for (std::uint64_t step = 0; step < job.steps; ++step) {
    const kernels::Update update = engine::update_for_step(optimizer, step);
    for (Slice& slice : run.slices) {
      const SegmentRule& rule = rules[slice.segment];
      const bool ternary = rule.format == Format::kTernary;
      const std::vector<float> mean = ternary
                                          ? mean_of_codes(job, slice, rule, static_cast<std::uint32_t>(step), counts)
                                          : mean_of_floats(slice, rule.format);
      update_slice(job, update, segments[slice.segment].decays ? outside : 0.0F, mean, slice);
    }
  }
  run.entropies = entropies_of(segments, rules, counts, members);
  return run;
}

}  // namespace tg::lab
