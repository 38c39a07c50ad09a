// The run that this node is asked to begin, or to come into, as status shows it until it is on: in memory alone, for a
// proposal that comes to nothing leaves no record. Node's thread.
#pragma once

#include <string>

#include "daemon/membership/run_identity.h"
#include "daemon/run/run_context.h"
#include "schema/control/control.h"
#include "schema/options/job.h"

namespace tg::daemon {

class PendingRun {
 public:
  explicit PendingRun(const RunContext& context) : context_(context) {}

  const std::string& id() const { return id_; }  // "": none
  void show(const RunIdentity& run, const schema::JobSpec& job, schema::RunState state);
  void waits(const std::string& why);      // "": no longer. A start, for its members
  bool joins(const std::string& how_far);  // false: nothing new
  void began() { id_.clear(); }            // or ended: its record says the rest
  void came_to_nothing();
  // Of a run that never began here, and that has ended for all.
  Status record_end(const std::string& run, schema::RunState state, const std::string& reason);

 private:
  void show_reason(const std::string& reason);

  const RunContext& context_;
  std::string id_;
  std::string waits_, joins_;  // as it was shown last
};

}  // namespace tg::daemon
