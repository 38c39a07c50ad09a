// What the model of an ended run takes for what, as a part of its page: a confusion matrix, the classes that it
// confuses most, and the pictures that it was most wrong about. Pure.
#pragma once

#include <string>

#include "kernels/base/status.h"
#include "schema/control/samples.h"
#include "schema/control/status.h"

namespace tg::ctl {

// Markup for ReportData::mistakes (page.h). kCorrupt: the answer is not what it says to be.
Result<std::string> mistakes_part(const schema::Mistakes& mistakes, const schema::RunStatus& run);

}  // namespace tg::ctl
