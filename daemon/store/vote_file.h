// A voter's vote on disk: the file `vote` in the run's directory, replaced atomically and synced before anybody is told
// of it (daemon/membership/view_change.h); on a disk that has filled, too. Two lines: the vote as JSON, padded with
// spaces, and the SHA-256 of that line. Beside it lies vote.other, the place of the next one.
#pragma once

#include <string>

#include "daemon/membership/voter.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kVoteFile = "vote";

// On the disk when it returns. Errors (kIo) name the file and the cause.
Status write_vote(const std::string& run_directory, const VoterState& vote);
// kNotFound where there is none. A vote that is torn or changed is none that counts: the error (kCorrupt) names the
// file.
Result<VoterState> read_vote(const std::string& run_directory);

}  // namespace tg::daemon
