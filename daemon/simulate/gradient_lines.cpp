#include "daemon/simulate/gradient_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/exchange/gradient_statistics.h"
#include "daemon/simulate/gradient_shape.h"
#include "daemon/step/job_layout.h"

namespace tg::daemon {
namespace {

// As it is measured for the scaler.
kernels::Statistics statistics_of(std::span<const float> segment, const kernels::Kernels& kernels) {
  kernels::Statistics all;
  for (std::size_t first = 0; first < segment.size(); first += GradientStatistics::kSlice)
    all.join(kernels.statistics(segment.subspan(first, std::min(GradientStatistics::kSlice, segment.size() - first))));
  return all;
}

nlohmann::ordered_json side_json(const GradientShape::Side& side) {
  return {{"max", side.max_abs}, {"length", side.length}, {"gap", side.gap}, {"histogram", side.histogram}};
}

std::string line_of(std::uint64_t step, const std::optional<std::string>& segment,
                    const std::vector<ClippedPart>& parts) {
  const GradientShape shape = shape_of(parts);
  nlohmann::ordered_json line;
  line["step"] = step;
  line["segment"] = segment ? nlohmann::ordered_json(*segment) : nlohmann::ordered_json();
  std::size_t elements = 0;
  for (const ClippedPart& part : parts) elements += part.values.size();
  line["elements"] = elements;
  line["clipped_elements"] = shape.clipped_count;
  line["length_ratio"] = shape.length_ratio;
  line["angle_degrees"] = shape.angle_degrees;
  line["before"] = side_json(shape.before);
  line["clipped"] = side_json(shape.clipped);
  return line.dump();
}

}  // namespace

std::vector<std::string> gradient_lines(std::uint64_t step, const schema::JobSpec& job, const Layout& layout,
                                        const engine::SegmentTable& segments, std::span<const float> gradient,
                                        const kernels::Kernels& kernels) {
  std::vector<std::string> lines;
  std::vector<ClippedPart> all;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const engine::Segment& segment = segments[s];
    if (segment.frozen) continue;
    const std::span<const float> padded = gradient.subspan(segment.offset, segment.padded_count());
    const float clip = layout.coded(s) ? code_rule(job).own(statistics_of(padded, kernels), segment.element_count).clip
                                       : std::numeric_limits<float>::infinity();
    all.push_back({padded.first(segment.element_count), clip});
    lines.push_back(line_of(step, segment.name, {all.back()}));
  }
  lines.push_back(line_of(step, std::nullopt, all));
  return lines;
}

}  // namespace tg::daemon
