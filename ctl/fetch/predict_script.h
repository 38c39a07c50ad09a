// predict.py, as it lies beside this file: fetch writes it beside each model.
#pragma once

#include <string_view>

namespace tg::ctl {

std::string_view predict_script();

}  // namespace tg::ctl
