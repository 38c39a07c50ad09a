// Folders of pictures. Loading reads every file once, on several threads, for its hash and its header. Pictures are
// decoded on demand. The hash covers classes, names, labels and the files' bytes, in the list's order. A damaged header
// is found when loading, damaged pixels when the picture is decoded. Any thread.
#pragma once

#include "engine/dataset.h"

namespace tg::engine {

Result<Dataset> load_folder(const DatasetOptions& options);

}  // namespace tg::engine
