// status --json: the stable form for programs. Numbers are numbers, digests are strings of 16 hexadecimal digits
// (JSON's numbers do not hold 64 bits), null stands where there is no value yet. Keys are only ever added within a
// schema_version. Pure.
#pragma once

#include <string>

#include "schema/control/control.h"

namespace tg::ctl {

inline constexpr int kStatusSchemaVersion = 1;

// indent < 0: one line.
std::string format_status_json(const schema::MeshStatus& mesh, int indent);

}  // namespace tg::ctl
