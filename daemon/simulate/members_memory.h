// What the members of a simulated view take of this machine, beside what preparing the first of them has taken.
#pragma once

#include <functional>
#include <string>

#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Says how much it is, and refuses what does not fit.
Status check_memory_of_members(const schema::JobSpec& job, const Prepared& prepared, std::size_t members,
                               const schema::Commit& choice, const engine::ComputeDevice& compute,
                               const std::function<void(const std::string&)>& say);

}  // namespace tg::daemon
