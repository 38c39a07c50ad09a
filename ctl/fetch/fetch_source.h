// Decides from the run's status alone whose files `fetch` takes, or why it takes none. Pure.
#pragma once

#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

struct FetchSource {
  std::vector<std::string> nodes;  // nodes that have the state; the first one is asked first
  std::uint64_t step = 0, digest = 0;
  std::vector<std::string> notes;  // for people: who differs
};

// In a COMPLETED or STOPPED run all members must have ended at one step with one digest; else the error names the odd
// ones. Members that do not answer, or have saved nothing, are skipped. partial: of a run that is FAILED or
// INTERRUPTED, take the furthest members. asked: the node that is asked; it comes first if possible.
Result<FetchSource> choose_fetch_source(const schema::RunStatus& run, const std::string& asked, bool partial);

}  // namespace tg::ctl
