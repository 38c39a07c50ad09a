// The module's build: the program's own id (schema/version.h, cmake/TgdBuildId.cmake), written into the module as well,
// so that it need not link schema/.
#pragma once

namespace tg::engine::cuda {

const char* build_id();

}  // namespace tg::engine::cuda
