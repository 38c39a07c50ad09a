// Folders of pictures. Loading reads every file once, on several threads, a file at a time each: its hash and its
// header. Pictures are decoded when they are asked for. What is hashed: classes, names, labels and the files' bytes, in
// the list's order. A file whose header is damaged is found here, one whose pixels are damaged when it is decoded. Any
// thread.
#pragma once

#include "engine/dataset.h"

namespace tg::engine {

Result<Dataset> load_folder(const DatasetOptions& options);

}  // namespace tg::engine
