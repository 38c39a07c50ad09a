// The file `vote` in a run's directory: a voter's state, replaced atomically and synced before any message about it is
// sent (daemon/membership/view_change.h), even on a full disk. It has two lines: the state as JSON, padded with spaces,
// and the SHA-256 of that line. The file vote.other beside it holds the space for the next vote.
#pragma once

#include <string>

#include "daemon/membership/voter.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kVoteFile = "vote";

// The vote is on the disk when the call returns. Errors (kIo) name the file and the cause.
Status write_vote(const std::string& run_directory, const VoterState& vote);
// kNotFound if there is no vote. A torn or changed vote does not count: the error (kCorrupt) names the file.
Result<VoterState> read_vote(const std::string& run_directory);

}  // namespace tg::daemon
