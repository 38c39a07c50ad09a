// The libraries as they are installed: what of them is here, and from which folders it came. Any thread.
#pragma once

#include <string>

namespace tg::engine::cuda {

// cuDNN is a small library that loads its parts when they are first needed, and ends the process where it does not find
// one. So all that an engine needs are loaded before the first call of cuDNN, and compared by version. Which one is
// missing or of another version, and what to do; empty where there is nothing.
std::string damaged_cudnn();

// The same of one part, by its file's name: loaded beside libcudnn, else where the loader looks.
std::string missing_part(const std::string& file);

// "/usr/lib/x86_64-linux-gnu", or both folders: "cuDNN of /a, cuBLAS of /b".
std::string library_folders();

}  // namespace tg::engine::cuda
