// Decides from a run's status which members' files `fetch` takes, or why it takes none. Pure.
#pragma once

#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

struct FetchSource {
  std::vector<std::string> nodes;  // nodes that have the state, in the order in which they are asked
  std::uint64_t step = 0, digest = 0;
  std::vector<std::string> notes;  // for people: the members that differ
};

// In a COMPLETED or STOPPED run all members must have ended at one step with one digest; else the error names those
// that differ. Members that do not answer, or have no saved state, are skipped. partial: take the furthest members of a
// FAILED or INTERRUPTED run. asked: the asked node; it comes first if possible.
Result<FetchSource> choose_fetch_source(const schema::RunStatus& run, const std::string& asked, bool partial);

}  // namespace tg::ctl
