#include "tests/lab/plain_exchange.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "engine/optimizer.h"
#include "engine/replay/replay_engine.h"
#include "kernels/host_home.h"

namespace tg::lab {
namespace {

constexpr std::size_t kSliceElements = 4096;
constexpr std::uint32_t kDitherStream = 1u << 31;

using Format = schema::GradientFormat;

struct SegmentRule {
  Format format = Format::kTernary;
  std::vector<float> clips;    // by rank: what |g| is cut at
  std::vector<float> scalers;  // by rank; all the same where they are shared
};

// Counts of the values -N..N, as they come.
struct Histogram {
  std::map<int, std::uint64_t> counts;
  std::uint64_t total = 0;
  void add(int value) {
    ++counts[value];
    ++total;
  }
  double bits_per_element() const {
    double bits = 0;
    for (const auto& [value, count] : counts) {
      const double share = static_cast<double>(count) / static_cast<double>(total);
      bits -= share * std::log2(share);
    }
    return bits;
  }
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

// The nearest binary16, ties to even: multiples of 2^-10 of the value's power of two, and of 2^-24 below the normal
// ones. Scaling by powers of two is exact.
float to_float16(float value) {
  const int exponent = std::max(value == 0 ? 0 : std::ilogb(value), -14) - 10;
  const double units = std::nearbyint(std::ldexp(static_cast<double>(value), -exponent));
  const double half = std::ldexp(units, exponent);
  return static_cast<float>(std::fabs(half) > kLargestFloat16 ? std::copysign(INFINITY, half) : half);
}

// Over a whole segment: the statistics of every 2^21 elements of it, joined in order.
kernels::Statistics statistics_of(std::span<const float> gradient) {
  constexpr std::size_t kSlice = 512U << 10;
  kernels::Statistics all = scalar().statistics(gradient.first(std::min(kSlice, gradient.size())));
  for (std::size_t at = kSlice; at < gradient.size(); at += kSlice) {
    const kernels::Statistics next = scalar().statistics(gradient.subspan(at, std::min(kSlice, gradient.size() - at)));
    all.sum += next.sum;
    all.sum_squares += next.sum_squares;
    all.max_abs = std::max(all.max_abs, next.max_abs);
    all.finite = all.finite && next.finite;
  }
  return all;
}

// Local scalers, eq. (2), and clip bounds of one member, from its whole gradient.
Status measure(const schema::JobSpec& job, const engine::SegmentTable& segments, const AlignedArray<float>& gradients,
               std::vector<SegmentRule>& rules) {
  const auto clip_sigma = static_cast<float>(job.clip_sigma);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const engine::Segment& segment = segments[s];
    const kernels::Statistics statistics =
        statistics_of(gradients.span().subspan(segment.offset, segment.padded_count()));
    const float bound = kernels::clip_bound(statistics, segment.element_count, clip_sigma);
    const bool repo = job.scaler == schema::ScalerRecipe::kRepo && std::isfinite(bound);
    const float local = repo ? bound : std::min(statistics.max_abs, bound);
    rules[s].clips.push_back(bound);
    rules[s].scalers.push_back(local);
    if (!statistics.finite) return invalid("the gradient of " + segment.name + " is not finite: a run ends there");
    if (rules[s].format == Format::kFloat16 && statistics.max_abs > kLargestFloat16)
      return invalid("the gradient of " + segment.name + " is too large for float16: a run ends there");
  }
  return {};
}

// Scaler sharing, eq. (4).
void share_scalers(std::vector<SegmentRule>& rules) {
  for (SegmentRule& rule : rules)
    rule.scalers.assign(rule.scalers.size(), *std::max_element(rule.scalers.begin(), rule.scalers.end()));
}

// s' = s 256/255, rounded once.
float applied(float scaler) { return static_cast<float>(static_cast<double>(scaler) * 256.0 / 255.0); }

// The code of element i of a segment, from its definition (kernels/kernels.h).
class Coder {
 public:
  Coder(std::uint64_t seed, std::uint32_t rank, std::uint32_t segment, std::uint32_t step)
      : seed_(seed), rank_(rank), segment_(segment), step_(step) {}

  int code(float g, std::size_t i, float clip, float scaler) {
    if (scaler < 0x1p-100F) return 0;
    if (i / 512 != group_) load_dithers(i / 512);
    if (i / 16 != block_) load_bytes(i / 16);
    const float q = 255.0F / scaler;
    const float scaled = std::fma(std::min(std::fabs(g), clip), q, dithers_[i % 16]);
    const int threshold = static_cast<int>(std::min(scaled, 255.0F));
    if (bytes_[i % 16] >= threshold) return 0;
    return std::signbit(g) ? -1 : 1;
  }

 private:
  void draw(std::uint32_t stream, std::size_t index, std::uint32_t* words) const {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(index), rank_, segment_ | stream, step_};
    kernels::philox4x32(counter, seed_, words);
  }
  void load_bytes(std::size_t block) {
    std::uint32_t words[4];
    draw(0, block, words);
    for (int i = 0; i < 16; ++i) bytes_[i] = static_cast<int>(words[i / 4] >> (8 * (i % 4)) & 255U);
    block_ = block;
  }
  void load_dithers(std::size_t group) {
    for (std::size_t part = 0; part < 4; ++part) {
      std::uint32_t words[4];
      draw(kDitherStream, 4 * group + part, words);
      for (std::size_t w = 0; w < 4; ++w) dithers_[4 * part + w] = static_cast<float>(words[w] >> 8) * 0x1p-24F;
    }
    group_ = group;
  }

  const std::uint64_t seed_;
  const std::uint32_t rank_, segment_, step_;
  std::size_t group_ = SIZE_MAX, block_ = SIZE_MAX;
  int bytes_[16] = {};
  float dithers_[16] = {};
};

struct Counts {
  std::vector<std::vector<Histogram>> codes;  // by segment, by rank
  std::vector<Histogram> sums;                // by segment
};

// What the codes of all members add up to: whole numbers of the shared s', or, in rank order, each member's own s'.
std::vector<float> sum_codes(const schema::JobSpec& job, const Slice& slice, const SegmentRule& rule,
                             std::uint32_t step, Counts& counts) {
  const bool shared = job.scaler_sharing == schema::ScalerSharing::kMax;
  std::vector<float> sums(slice.count);
  for (std::size_t rank = 0; rank < slice.gradients.size(); ++rank) {
    const float scaler = rule.scalers[rank],
                clip = job.scaler == schema::ScalerRecipe::kRepo ? scaler : rule.clips[rank];
    const float unit = shared ? 1.0F : applied(scaler);
    Coder coder(job.seed, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(slice.segment), step);
    int seen[3] = {};
    for (std::size_t i = 0; i < slice.count; ++i) {
      const int code = coder.code(slice.gradients[rank][i], slice.first + i, clip, scaler);
      if (code != 0) sums[i] += code > 0 ? unit : -unit;
      ++seen[code + 1];
    }
    Histogram& histogram = counts.codes[slice.segment][rank];
    for (int value = -1; value <= 1; ++value)
      if (seen[value + 1] > 0) histogram.counts[value] += static_cast<std::uint64_t>(seen[value + 1]);
    histogram.total += slice.count;
  }
  if (shared)
    for (const float sum : sums) counts.sums[slice.segment].add(static_cast<int>(sum));
  return sums;
}

// In rank order; float16 numbers are rounded by every member, and their sum once more.
std::vector<float> sum_floats(const Slice& slice, Format format) {
  const bool float16 = format == Format::kFloat16;
  std::vector<float> sums(slice.count);
  for (const std::vector<float>& gradient : slice.gradients)
    for (std::size_t i = 0; i < slice.count; ++i) sums[i] += float16 ? to_float16(gradient[i]) : gradient[i];
  if (float16) std::transform(sums.begin(), sums.end(), sums.begin(), to_float16);
  return sums;
}

void update_slice(const schema::JobSpec& job, const kernels::Update& update, float scale, float weight_decay,
                  const std::vector<float>& sums, Slice& slice) {
  for (std::size_t i = 0; i < slice.count; ++i) {
    float& w = slice.parameters[i];
    float& v = slice.velocity[i];
    float g = scale * sums[i];
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
    entropies.sum_bits += elements * counts.sums[s].bits_per_element();
    for (std::size_t rank = 0; rank < members; ++rank) {
      const Histogram& codes = counts.codes[s][rank];
      const auto zero = codes.counts.find(0);
      const double zero_count = zero == codes.counts.end() ? 0 : static_cast<double>(zero->second);
      entropies.code_bits[rank] += elements * codes.bits_per_element();
      zeros[rank] += elements * zero_count / static_cast<double>(codes.total);
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
  kernels::HostHome home(*kernels::available().back());
  for (std::size_t rank = 0; rank < members; ++rank) {
    auto engine = engine::make_replay_engine(
        model, {job.seed, static_cast<std::uint32_t>(rank), job.replay_zeros, job.replay_gradients.value_or("")}, home);
    if (!engine.ok()) return engine.error();
    std::fill(flat.begin(), flat.end(), 0.0F);
    (*engine)->backward(1, flat.data(), [](std::size_t, std::size_t) {});
    if (const Status fits = measure(job, segments, flat, rules); !fits.ok()) return fits.error();
    for (Slice& slice : run.slices) slice.gradients.push_back(part(slice));
  }
  if (job.scaler_sharing == schema::ScalerSharing::kMax) share_scalers(rules);

  Counts counts{std::vector<std::vector<Histogram>>(segments.size(), std::vector<Histogram>(members)),
                std::vector<Histogram>(segments.size())};
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
      const std::vector<float> sums = ternary ? sum_codes(job, slice, rule, static_cast<std::uint32_t>(step), counts)
                                              : sum_floats(slice, rule.format);
      const float magnitude =
          ternary && job.scaler_sharing == schema::ScalerSharing::kMax ? applied(rule.scalers.front()) : 1.0F;
      const float weight_decay = segments[slice.segment].decays ? outside : 0.0F;
      update_slice(job, update, magnitude / static_cast<float>(members), weight_decay, sums, slice);
    }
  }
  run.entropies = entropies_of(segments, rules, counts, members);
  return run;
}

}  // namespace tg::lab
