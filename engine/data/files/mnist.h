// MNIST's four IDX files (array.h) and those of sets that look the same, such as Fashion-MNIST. Any thread.
#pragma once

#include <string>

#include "engine/dataset.h"

namespace tg::engine {

// Loads the four files from `directory` or its folder mnist/, plain or .gz, named train-images-idx3-ubyte or
// train-images.idx3-ubyte and so on. Fills train, test, classes and hash.
Result<Dataset> load_mnist(const std::string& directory);

}  // namespace tg::engine
