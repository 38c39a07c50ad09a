// What each sample's loss is multiplied by, according to its class. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/dataset.h"
#include "kernels/base/status.h"

namespace tg::engine {

// Each label is below `classes`.
std::vector<std::size_t> samples_by_class(const ImageSet& set, std::size_t classes);

// By class, in proportion to what is wished, one positive number per class, or, if nothing is, to 1 / its training
// samples: so that all classes count alike. Scaled so that the mean over the training set is 1: then the learning rate
// means what it does without weights, and a step's loss is divided by its samples. Doubles are added in
// class order: the same on every machine. An error (kInvalidJob) if there are not as many numbers as classes.
Result<std::vector<double>> class_weights(const Dataset& data, const std::vector<double>& wished);

}  // namespace tg::engine
