// The installed libraries: whether all their parts are here, and from which folders they came. Any thread.
#pragma once

#include <string>

namespace tg::engine::cuda {

// cuDNN is a small library that loads its parts when they are first needed, and ends the process if one is missing. So
// all parts that an engine needs are loaded before the first call of cuDNN, and their versions compared. Returns which
// part is missing or of another version, and what to do; empty if all is well.
std::string damaged_cudnn();

// Checks one part by its file's name: it is loaded from beside libcudnn, else from where the loader looks.
std::string missing_part(const std::string& file);

// "/usr/lib/x86_64-linux-gnu", or two folders: "cuDNN of /a, cuBLAS of /b".
std::string library_folders();

}  // namespace tg::engine::cuda
