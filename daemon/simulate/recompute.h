// `tgd recompute DIR`: computes a recorded run again, from its beginning, with all its members in this process, and
// compares what comes of it with what is recorded: the digest at the end of each interval, the loss of each step, the
// last evaluation. What its bits depend on is compared first: data, model, and what each member computed with. A kernel
// variant is none of that: all give the same bits. One thread, which learns; seconds to as long as the run took.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/base/status.h"

namespace tg::daemon {

struct RecomputeOptions {
  std::string directory;                 // recorded_run.h
  std::optional<std::string> data_dir;   // in place of the job's
  std::optional<std::uint64_t> threads;  // per engine, in place of the recorded ones
};

// say: a line for people. OK if all is as recorded. An error (kFailed) says what differs, and from where on; any other
// kind, why it cannot be computed here, and what to do.
Status recompute(const RecomputeOptions& options, const std::function<void(const std::string&)>& say);

}  // namespace tg::daemon
