#include "schema/version.h"

namespace tg::schema {

std::string build_id() { return TG_BUILD_ID; }

}  // namespace tg::schema
