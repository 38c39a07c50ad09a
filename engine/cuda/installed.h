// The installed libraries: whether all their parts are here, and from which folders they came. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace tg::engine::cuda {

// cuDNN is a small library that loads its parts when they are first needed, and ends the process if one is missing. So
// all parts that an engine needs are loaded before the first call of cuDNN, and their versions compared. Returns which
// part is missing or of another version, and what to do; empty if all is well.
std::string damaged_cudnn();

// What to do where the parts do not fit.
inline constexpr std::string_view kReinstallCudnn =
    "; reinstall cuDNN 9, all parts of one version (deploy/jobs.md, GPUs)";

// The parts that cuDNN of this version (cudnnGetVersion()) opens by their bare names at the first convolution, and that
// do not lie in its folder: the loader then takes those of another installation, if there is one. ", without
// libcudnn_ext.so.9 beside it", or empty. They are not loaded here: cuDNN before 9.26 does not start behind them.
std::string parts_elsewhere(std::size_t version, const std::filesystem::path& folder);

// Checks one part by its file's name: it is loaded from beside libcudnn, else from where the loader looks.
std::string missing_part(const std::string& file);

// "/usr/lib/x86_64-linux-gnu", or two folders: "cuBLAS of /b, cuDNN of /a".
std::string library_folders();

}  // namespace tg::engine::cuda
