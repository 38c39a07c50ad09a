// The misclassifications of an ended run's model on its test data. The model is evaluated again, sample by sample, with
// the shares, batches and threads of the run's members, so that the counts equal the run's. Takes as long as all
// members' evaluations one after the other; runs on a thread of its own.
#pragma once

#include <functional>
#include <string>

#include "daemon/run/preparation_options.h"
#include "daemon/store/run_record.h"
#include "engine/compute_device.h"
#include "schema/control/samples.h"

namespace tg::daemon {

// options: for the run's job. directory: the folder with the run's model. compute outlives the call. advance() and
// exceptions: see prepare() (prepare.h). Errors name the node, and what differs from the run.
Result<schema::Misclassifications> find_misclassifications(const PreparationOptions& options, const RunRecord& record,
                                                           const std::string& directory,
                                                           const engine::ComputeDevice& compute,
                                                           const std::function<void()>& advance);

}  // namespace tg::daemon
