// Which states a run may go on from: those on the line that led to where it is. A resume that goes back to an earlier
// state gives up what came after it; a state that was given up is not taken again, since metrics.jsonl has lost its
// lines. Pure values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/store/run_record.h"
#include "daemon/store/state_facts.h"
#include "daemon/store/stretch.h"

namespace tg::daemon {

class RunLine {
 public:
  // past: the lines of views.jsonl.
  RunLine(const std::vector<Stretch>& past, const RunRecord& record);

  // Why a state with these facts is none to go on from, as a phrase that follows the file's name; "" if it is one.
  std::string refusal(const StateFacts& facts) const;
  bool has(const schema::StateId& id) const;

 private:
  const std::string run_;
  const std::uint32_t lineage_;                       // the newest
  std::multimap<std::uint32_t, std::uint64_t> keys_;  // of the lineages that are known
  std::map<std::uint32_t, schema::StateId> from_;     // what each began with
};

}  // namespace tg::daemon
