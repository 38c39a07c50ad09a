// The output of `models`: a table for people, JSON with stable keys for programs. Pure.
#pragma once

#include <string>

namespace tg::ctl {

inline constexpr int kModelsJsonVersion = 1;

std::string format_models();
std::string format_models_json();

}  // namespace tg::ctl
