// Whose files `fetch` takes, or why none: decided from the run's status alone. Pure.
#pragma once

#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

struct FetchSource {
  std::string node;                // empty = the asked node: all are equal
  std::vector<std::string> notes;  // for people: who differs
};

// A COMPLETED or STOPPED run: all members must have ended at one step with one digest; else the error names the odd
// ones. partial: a FAILED run gives its furthest member, and members that do not answer are passed over.
Result<FetchSource> choose_fetch_source(const schema::RunStatus& run, bool partial);

}  // namespace tg::ctl
