// A run that has not begun, on this node: is it prepared, how fast is the link, what does the vote say? The link is
// measured when preparing is over: the node's cores and memory have nothing else to do then. Node's thread.
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
  // members: of the run; with one, or a link that the job tells, there is nothing to measure.
  Candidate(const RunContext& context, std::uint64_t key, const schema::JobSpec& job, std::size_t members);

  void prepared(Result<std::shared_ptr<const Prepared>> result, double now_seconds);
  void replied(Seat from, const schema::ProbeReply& reply, double now_seconds);
  // Once, when everything that a vote says is known.
  std::optional<schema::Vote> take_vote(double now_seconds);
  double link_mbps() const { return probe_.mbps(); }  // payload; 0 = not measured

 private:
  schema::Vote vote() const;

  const RunContext& context_;
  const std::uint64_t key_;
  const schema::JobSpec& job_;
  const std::size_t members_;
  std::optional<Result<std::shared_ptr<const Prepared>>> preparation_;
  LinkProbe probe_;
  bool voted_ = false;
};

}  // namespace tg::daemon
