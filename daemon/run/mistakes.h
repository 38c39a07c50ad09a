// What the model of an ended run says of its test data: evaluated anew, sample by sample, with the shares, batches and
// threads that the run's members had, so that it counts what the run has counted. Takes seconds to as long as an
// evaluation by all members, one after the other; on a thread of its own.
#pragma once

#include <functional>
#include <string>

#include "daemon/run/preparation_options.h"
#include "daemon/store/run_record.h"
#include "engine/compute_device.h"
#include "schema/control/samples.h"

namespace tg::daemon {

// options: of the run's job. directory: where the run's model lies. compute outlives the call. advance(), and what is
// thrown: as of prepare() (preparation.h). Errors name the node, and what is not what the run had.
Result<schema::Misclassifications> find_mistakes(const PreparationOptions& options, const RunRecord& record,
                                                 const std::string& directory, const engine::ComputeDevice& compute,
                                                 const std::function<void()>& advance);

}  // namespace tg::daemon
