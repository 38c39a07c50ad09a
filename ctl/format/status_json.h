// status --json and list --json: the stable form for programs. Numbers are numbers, times are UTC (RFC 3339), digests
// are strings of 16 hexadecimal digits (JSON's numbers do not hold 64 bits), a value that is not known yet is null.
// Keys are only ever added within a schema_version. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

inline constexpr int kStatusSchemaVersion = 1;

// indent < 0: JSON on one line.
std::string format_status_json(const schema::MeshStatus& mesh, std::int64_t now_ms, int indent);
// The same with the runs alone.
std::string format_list_json(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms, int indent);

}  // namespace tg::ctl
