// The preparation of a run that has not begun on this node: its result, the link's rate, and the vote. The links to all
// other nodes are measured after preparing, when the node's cores and memory are idle. Node's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/mesh/probe/link_probe.h"
#include "daemon/run/run_context.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

class RunPreparation {
 public:
  // measured: the members to which the link is measured, unless the job gives its rate.
  RunPreparation(const RunContext& context, std::uint64_t run_key, const schema::JobSpec& job,
                 std::uint64_t global_batch, std::vector<Seat> measured);

  void on_prepared(Result<std::shared_ptr<const PreparedView>> result);
  void on_probe_reply(Seat from, const schema::ProbeReply& reply);
  // Returns the vote once, when it is complete.
  std::optional<schema::Vote> take_vote();
  engine::EachName data_names() const;                // the names of the files in the vote
  double link_mbps() const { return probe_.mbps(); }  // payload; 0 = not measured

 private:
  schema::Vote vote() const;

  const RunContext& context_;
  const std::uint64_t run_key_;
  const schema::JobSpec& job_;
  const std::uint64_t global_batch_;
  std::optional<Result<std::shared_ptr<const PreparedView>>> result_;
  LinkProbe probe_;
  bool voted_ = false;
};

}  // namespace tg::daemon
