// A run that this node is asked to begin or to join, as status shows it until it is active. It is kept in memory only:
// a proposal that fails leaves no record. Node's thread.
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

  const std::string& id() const { return id_; }  // "" = none
  void show(const RunIdentity& run, const schema::JobSpec& job, schema::RunState state);
  void show_wait(const std::string& why);      // a start waits for members; "" = no longer
  bool show_join(const std::string& how_far);  // false: already shown
  void clear() { id_.clear(); }                // the run began or ended: it has a record
  void discard();
  // The record of a run that ended for all and never began here.
  RunRecord ended(const std::string& run, schema::RunState state, const std::string& reason);

 private:
  void show_reason(const std::string& reason);

  const RunContext& context_;
  std::string id_;
  std::string wait_, join_;  // the texts shown last
};

}  // namespace tg::daemon
