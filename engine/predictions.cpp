#include "engine/predictions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

double number_or_0(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

std::vector<Prediction> predictions(std::span<const float> logits, std::span<const std::int32_t> labels,
                                    std::span<const std::size_t> samples) {
  TG_CHECK(labels.size() == samples.size(), labels.size(), samples.size());
  std::vector<Prediction> all;
  if (labels.empty()) return all;
  const std::size_t classes = logits.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * classes, classes);
    const auto highest = std::max_element(row.begin(), row.end());
    // In double, relative to the highest: no overflow, and the sum is at least 1.
    double sum = 0;
    for (const float each : row) sum += std::exp(static_cast<double>(each) - *highest);
    const auto label = static_cast<std::size_t>(labels[i]);
    all.push_back({samples[i], static_cast<std::uint32_t>(label), static_cast<std::uint32_t>(highest - row.begin()),
                   number_or_0(1 / sum), number_or_0(std::exp(static_cast<double>(row[label]) - *highest) / sum)});
  }
  return all;
}

std::vector<std::uint32_t> confusion_matrix(std::span<const Prediction> all, std::size_t classes) {
  std::vector<std::uint32_t> counts(classes * classes);
  for (const Prediction& one : all) ++counts.at(one.label * classes + one.said);
  return counts;
}

std::vector<ClassPair> most_confused(std::span<const Prediction> all, std::size_t most) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
  std::map<std::uint32_t, std::uint64_t> of;
  for (const Prediction& one : all) {
    ++of[one.label];
    if (one.said != one.label) ++counts[{one.label, one.said}];
  }
  std::vector<ClassPair> pairs;
  for (const auto& [pair, count] : counts) pairs.push_back({pair.first, pair.second, count, of[pair.first]});
  std::ranges::stable_sort(pairs, std::greater<>(), &ClassPair::count);
  pairs.resize(std::min(most, pairs.size()));
  return pairs;
}

std::vector<Prediction> wrongest(std::span<const Prediction> all, std::size_t most) {
  std::vector<Prediction> wrong;
  std::ranges::copy_if(all, std::back_inserter(wrong), [](const Prediction& one) { return one.said != one.label; });
  std::ranges::sort(wrong, {}, [](const Prediction& one) { return std::tuple(one.label_probability, one.sample); });
  wrong.resize(std::min(most, wrong.size()));
  return wrong;
}

}  // namespace tg::engine
