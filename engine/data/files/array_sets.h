// Data sets that are arrays in files: data = npy and data = idx. Each part is a file of samples and one of labels.
//
//   npy   x_train.npy, y_train.npy, x_test.npy, y_test.npy (or x_val.npy, y_val.npy); X_ and Y_ as well, also
//         train_images.npy, train_labels.npy, train_features.npy, with - for _. Or one part: x.npy, y.npy, or
//         images.npy, features.npy, labels.npy
//   idx   one file each with train-images, train-labels, t10k-images or test-images, t10k-labels or test-labels in its
//         name, plain or .gz. Or one part: names with images and labels in them
//   both  classes.txt, one name per line, if the classes have names. The number of classes is the largest label plus
//         one, or the number of names if that is more
//
// Samples have the shape N, D (features); N, H, W (grey); N, C, H, W or N, H, W, C with 1 or 3 channels (channels first
// if both fit). The hash covers every byte of the files. Any thread.
#pragma once

#include "engine/dataset.h"

namespace tg::engine {

Result<Dataset> load_arrays(const DatasetOptions& options);

}  // namespace tg::engine
