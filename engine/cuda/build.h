// Which build the module is of: the program's own id (schema/version.h, cmake/TgdBuildId.cmake), written into the
// module as well, so that it links nothing of what travels.
#pragma once

namespace tg::engine::cuda {

const char* build_id();

}  // namespace tg::engine::cuda
