// The lineages of a run beside the one that this node has (daemon/README.md, "Two lineages"): compares what heartbeats
// name with what is in memory and on disk, and sets aside what another lineage contradicts. Node's thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/membership/lineage.h"
#include "daemon/run/run_context.h"
#include "daemon/store/run_record.h"

namespace tg::daemon {

class OtherLineages {
 public:
  explicit OtherLineages(const RunContext& context) : context_(context) {}

  // What this node holds of the run, apart from newer states in memory.
  Held held(const RunRecord& record);
  // A peer has a lower lineage. Returns what to show once, if that lineage is contradicted; "" otherwise.
  std::string on_lower(const schema::Heartbeat& beat, const Held& own);
  // key: the run's that it becomes. by_order: a person began the other lineage. An error (logged) leaves the run as it
  // is.
  Result<RunRecord> set_aside(const RunRecord& record, std::uint64_t key, const std::string& why, bool by_order) const;
  // Whether a lineage of the run older than by_order was set aside here and no user let this node join the other one.
  bool stays_out(const std::string& run, std::uint32_t by_order) const;
  bool let_in(const std::string& run);  // false if no lineage of it was set aside
  // Names the lineage that was set aside here and not fetched yet, and what to do; "" = none.
  std::string problem() const;

 private:
  const RunContext& context_;
  std::map<std::uint64_t, Lineage> lineages_;  // by run key; none ever changes
  std::set<std::uint64_t> named_;              // keys of lower lineages
  std::string let_in_;                         // the run that a user let this node join
};

}  // namespace tg::daemon
