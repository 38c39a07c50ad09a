// What `models` prints: for people a table, for programs JSON with stable keys. Pure.
#pragma once

#include <string>

namespace tg::ctl {

inline constexpr int kModelsJsonVersion = 1;

std::string format_models();
std::string format_models_json();

}  // namespace tg::ctl
