#include "daemon/simulate/gradient_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/exchange/code_rule.h"
#include "daemon/exchange/gradient_statistics.h"
#include "daemon/simulate/gradient_shape.h"
#include "daemon/step/job_layout.h"
#include "kernels/base/aligned_array.h"

namespace tg::daemon {
namespace {

using Gradients = std::span<const std::span<const float>>;  // by rank

// As a member measures it for its scaler; of a padded segment.
CodeRule::Own own_of(const CodeRule& rule, std::span<const float> gradient, std::size_t elements,
                     const kernels::Kernels& kernels) {
  kernels::Statistics all;
  for (std::size_t first = 0; first < gradient.size(); first += GradientStatistics::kSlice)
    all.join(
        kernels.statistics(gradient.subspan(first, std::min(GradientStatistics::kSlice, gradient.size() - first))));
  return rule.own(all, elements);
}

// How often the first member's codes are -1, 0, 1, and the sums of all members' -N .. N, where these have a unit in
// common; and what a code of 1 is worth. key: the first member's; gradients: of a padded segment.
nlohmann::ordered_json codes_json(kernels::DrawKey key, const CodeRule& rule, std::size_t elements, Gradients gradients,
                                  const kernels::Kernels& kernels) {
  const std::size_t members = gradients.size(), padded = gradients.front().size();
  std::vector<CodeRule::Own> own;
  std::vector<float> scalers;
  for (const std::span<const float> gradient : gradients) {
    own.push_back(own_of(rule, gradient, elements, kernels));
    scalers.push_back(own.back().scaler);
  }
  const float agreed = rule.agreed(scalers);
  AlignedArray<std::uint64_t> nonzero(padded / kernels::kWordBits), negative(padded / kernels::kWordBits);
  AlignedArray<std::int8_t> sums(padded);
  std::vector<std::uint64_t> of_first(3), of_all(2 * members + 1);
  for (std::size_t rank = 0; rank < members; ++rank, ++key.seat) {
    kernels.ternarize(gradients[rank], 0, key, rule.scale(own[rank], agreed), {nonzero.span(), negative.span()});
    kernels.accumulate_planes({nonzero.span(), negative.span()}, sums.span());
    if (rank == 0)
      for (std::size_t i = 0; i < elements; ++i) ++of_first[static_cast<std::size_t>(sums[i] + 1)];
  }
  const auto zero = static_cast<std::ptrdiff_t>(members);
  for (std::size_t i = 0; i < elements; ++i) ++of_all[static_cast<std::size_t>(zero + sums[i])];
  nlohmann::ordered_json json{{"unit", rule.unit(rule.scale(own.front(), agreed).scaler)}, {"counts", of_first}};
  if (rule.shared) json["sums"] = of_all;
  return json;
}

nlohmann::ordered_json side_json(const GradientShape::Side& side) {
  return {{"max", side.max_abs}, {"length", side.length}, {"gap", side.gap}, {"histogram", side.histogram}};
}

nlohmann::ordered_json line_of(std::uint64_t step, const std::optional<std::string>& segment,
                               const std::vector<ClippedSegment>& parts) {
  const GradientShape shape = shape_of(parts);
  nlohmann::ordered_json line;
  line["step"] = step;
  line["segment"] = segment ? nlohmann::ordered_json(*segment) : nlohmann::ordered_json();
  std::size_t elements = 0;
  for (const ClippedSegment& part : parts) elements += part.values.size();
  line["elements"] = elements;
  line["clipped_elements"] = shape.clipped_count;
  line["length_ratio"] = shape.length_ratio;
  line["angle_degrees"] = shape.angle_degrees;
  line["before"] = side_json(shape.before);
  line["clipped"] = side_json(shape.clipped);
  return line;
}

}  // namespace

std::vector<std::string> gradient_lines(std::uint64_t step, const schema::JobSpec& job, const Layout& layout,
                                        const engine::SegmentTable& segments, Gradients gradients,
                                        const kernels::Kernels& kernels) {
  const CodeRule rule = code_rule(job);
  std::vector<std::string> lines;
  std::vector<ClippedSegment> all;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const engine::Segment& segment = segments[s];
    if (segment.frozen) continue;
    std::vector<std::span<const float>> parts;
    for (const std::span<const float> gradient : gradients)
      parts.push_back(gradient.subspan(segment.offset, segment.padded_count()));
    const float clip = layout.coded(s) ? own_of(rule, parts.front(), segment.element_count, kernels).clip
                                       : std::numeric_limits<float>::infinity();
    all.push_back({parts.front().first(segment.element_count), clip});
    nlohmann::ordered_json line = line_of(step, segment.name, {all.back()});
    const kernels::DrawKey key{job.seed, 0, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(step - 1)};
    if (layout.coded(s)) line["codes"] = codes_json(key, rule, segment.element_count, parts, kernels);
    lines.push_back(line.dump());
  }
  lines.push_back(line_of(step, std::nullopt, all).dump());
  return lines;
}

}  // namespace tg::daemon
