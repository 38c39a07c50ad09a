#include "engine/data/class_weights.h"

#include <string>

#include "engine/data/text_of.h"

namespace tg::engine {

std::vector<std::size_t> samples_by_class(const ImageSet& set, std::size_t classes) {
  std::vector<std::size_t> counts(classes);
  for (const std::uint16_t label : set.labels) ++counts[label];
  return counts;
}

Result<std::vector<double>> class_weights(const Dataset& data, const std::vector<double>& wished) {
  const std::vector<std::size_t> counts = samples_by_class(data.train, data.classes.size());
  if (!wished.empty() && wished.size() != counts.size())
    return Error{ErrorKind::kInvalidJob, "class-weights has " + grouped(wished.size()) +
                                             (wished.size() == 1 ? " number" : " numbers") + ", and the data have " +
                                             grouped(counts.size()) + (counts.size() == 1 ? " class" : " classes") +
                                             "; give one for each in the order of the labels, or balanced"};
  std::vector<double> weights(wished);
  if (wished.empty())
    for (const std::size_t count : counts) weights.push_back(count == 0 ? 0 : 1 / static_cast<double>(count));
  double samples = 0, sum = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    samples += static_cast<double>(counts[c]);
    sum += static_cast<double>(counts[c]) * weights[c];
  }
  for (double& weight : weights) weight *= samples / sum;
  return weights;
}

}  // namespace tg::engine
