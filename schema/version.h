// Which build this is: nodes compare it in their hello, both programs print it with --version.
#pragma once

#include <string>

namespace tg::schema {

std::string build_id();  // "0.1.0+3f2a9c1", "+dirty" or nothing where git cannot say

}  // namespace tg::schema
