// What a network says of labelled samples, one by one, and what follows: which classes it takes for which, and where it
// is most wrong. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tg::engine {

struct Prediction {
  std::size_t sample = 0;   // index in the set
  std::uint32_t label = 0;  // what it is
  std::uint32_t said = 0;   // the highest logit, the first of equals: EvaluationCounts::correct counts so
  double probability = 0;   // softmax of that logit; 0 where logits are not numbers
  double label_probability = 0;
};

// Reads rows of logits, one for each of these samples.
std::vector<Prediction> predictions(std::span<const float> logits, std::span<const std::int32_t> labels,
                                    std::span<const std::size_t> samples);

// Samples by what they are and what was said: classes * classes, row by row.
std::vector<std::uint32_t> confusion_matrix(std::span<const Prediction> all, std::size_t classes);

struct ClassPair {  // so many samples of a class that were taken for another
  std::uint32_t label = 0, said = 0;
  std::uint64_t count = 0, of = 0;  // `of`: all samples of that class
};
// The pairs with the most samples, the lower classes first among equals; at most so many.
std::vector<ClassPair> most_confused(std::span<const Prediction> all, std::size_t most);

// Wrong ones, the least probability of the label first, among equals the lower sample; at most so many.
std::vector<Prediction> wrongest(std::span<const Prediction> all, std::size_t most);

}  // namespace tg::engine
