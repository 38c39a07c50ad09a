// What `plan --calibrate FILE` reads: one or more JSON objects as tests/lab/exchange --json prints them, one behind the
// other, on one line each or on many. Pure, the text given.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/control/forecast.h"

namespace tg::ctl {

// Errors name file, object and field. A link that was not shaped tells nothing about a link: such an object is refused.
Result<std::vector<schema::MeasuredStep>> parse_calibration(const std::string& text, const std::string& file);

}  // namespace tg::ctl
