// The section of a run's page with its model's misclassifications: the confusion matrix, the most confused classes, and
// the pictures with the greatest loss. Pure.
#pragma once

#include <string>

#include "kernels/base/status.h"
#include "schema/control/samples.h"
#include "schema/control/status.h"

namespace tg::ctl {

// Markup for ReportData::misclassifications (page.h). kCorrupt: the reply has invalid sizes.
Result<std::string> misclassification_section(const schema::Misclassifications& found, const schema::RunStatus& run);

}  // namespace tg::ctl
