// Folders of pictures. Loading examines every file (examine.h); pictures are decoded on demand. The hash covers
// classes, names, labels, the files' bytes and which are damaged, in the list's order. Any thread.
#pragma once

#include "engine/dataset.h"

namespace tg::engine {

Result<Dataset> load_folder(const DatasetOptions& options);

}  // namespace tg::engine
