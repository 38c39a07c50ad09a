// The text of predict.py in this folder, which fetch writes beside each model.
#pragma once

#include <string_view>

namespace tg::ctl {

std::string_view predict_script();

}  // namespace tg::ctl
