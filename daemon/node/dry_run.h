// What a start would do, without a run (start --dry-run): prepares one as a start does, measures the link, and answers
// the client with the facts and a prediction. One at a time. Node's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/control/control_server.h"
#include "daemon/node/advisor.h"
#include "daemon/run/run.h"

namespace tg::daemon {

class DryRun {
 public:
  // All of it outlives this.
  DryRun(const RunContext& context, ControlServer& control, Advisor& advisor)
      : context_(context), control_(control), advisor_(advisor) {}

  bool on() const { return run_ != nullptr; }
  bool has(std::uint64_t key) const { return run_ && run_->identity().run_key == key; }
  // pictures: predict nothing, show some of the data.
  void begin(std::uint64_t token, RunIdentity identity, schema::JobSpec job, bool pictures);
  void prepared(Result<std::shared_ptr<const PreparedView>> result) { run_->prepared(std::move(result)); }
  void replied(Seat from, const schema::ProbeReply& reply) { run_->candidate().replied(from, reply); }
  // Answers as soon as everything is known. busy: with a run.
  void tick(bool busy);
  void give_way(Error why);  // to a run

 private:
  void foresee(const schema::Vote& vote, bool busy);
  void answer(schema::ReplyBody reply);

  const RunContext& context_;
  ControlServer& control_;
  Advisor& advisor_;
  std::unique_ptr<Run> run_;
  std::uint64_t token_ = 0;
  bool pictures_ = false;
};

}  // namespace tg::daemon
