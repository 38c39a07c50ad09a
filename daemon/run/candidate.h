// A run that has not begun on this node: whether it is prepared, how fast the link is, and what the vote says. The link
// to all other nodes is measured after preparing, when the node's cores and memory are idle. Node's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/mesh/probe/link_probe.h"
#include "daemon/run/run_context.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

class Candidate {
 public:
  // measured: the members to whom the link is measured; a link rate given by the job is not.
  Candidate(const RunContext& context, std::uint64_t key, const schema::JobSpec& job, std::uint64_t global_batch,
            std::vector<Seat> measured);

  void prepared(Result<std::shared_ptr<const PreparedView>> result);
  void replied(Seat from, const schema::ProbeReply& reply);
  // Returned once, when everything in the vote is known.
  std::optional<schema::Vote> take_vote();
  engine::EachName data_names() const;                // of the files that the vote is about
  double link_mbps() const { return probe_.mbps(); }  // payload; 0 = not measured

 private:
  schema::Vote vote() const;

  const RunContext& context_;
  const std::uint64_t key_;
  const schema::JobSpec& job_;
  const std::uint64_t global_batch_;
  std::optional<Result<std::shared_ptr<const PreparedView>>> preparation_;
  LinkProbe probe_;
  bool voted_ = false;
};

}  // namespace tg::daemon
