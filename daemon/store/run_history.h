// The history of a run, which decides from which states it can be resumed: those on the branch that led to its current
// state. A resume from an earlier state gives up the states after it; they are not used again, since metrics.jsonl has
// lost their lines. Pure values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/store/run_record.h"
#include "daemon/store/state_facts.h"
#include "daemon/store/view_interval.h"

namespace tg::daemon {

class RunHistory {
 public:
  // past: the lines of views.jsonl.
  RunHistory(const std::vector<ViewInterval>& past, const RunRecord& record);

  // Why the run cannot be resumed from a state with these facts, as a phrase that follows the file's name; "" if it
  // can.
  std::string rejection_reason(const StateFacts& facts) const;
  bool contains(const schema::StateId& id) const;
  // What the newest lineage descends from, newest first.
  std::vector<schema::Origin> line() const;
  std::uint32_t by_order() const { return by_order_; }  // the newest lineage that a person began

 private:
  const std::string run_;
  const std::uint32_t lineage_;  // the newest lineage
  std::uint32_t by_order_ = 1;
  std::multimap<std::uint32_t, std::uint64_t> keys_;  // the keys of the known lineages
  std::map<std::uint32_t, schema::StateId> from_;     // the state that each lineage began with
};

}  // namespace tg::daemon
