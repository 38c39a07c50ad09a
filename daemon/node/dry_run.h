// What a start would do, without a run: prepares one as a start does, which times its computing and measures the link,
// and answers `start --dry-run` with the facts and a prediction, `plan` with predictions of other meshes. One at a
// time. Node's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/control/control_server.h"
#include "daemon/run/run.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

// What a step of a prepared run will take with this choice, added to its facts.
void add_prediction(schema::StartReply& facts, const RunContext& context, const Run& run, const schema::Commit& choice);

class DryRun {
 public:
  // Both outlive this.
  DryRun(const RunContext& context, ControlServer& control) : context_(context), control_(control) {}

  bool on() const { return run_ != nullptr; }
  bool has(std::uint64_t key) const { return run_ && run_->identity().run_key == key; }
  // pictures: predict nothing, show some of the data.
  void begin(std::uint64_t token, RunIdentity identity, schema::JobSpec job, bool pictures);
  // Prepares a run only for what the request does not tell: the time of computing, the link. busy: why nothing can be
  // prepared now; "" = it can.
  void plan(std::uint64_t token, const schema::ForecastRequest& request, const std::string& busy);
  void prepared(Result<std::shared_ptr<const PreparedView>> result) { run_->prepared(std::move(result)); }
  void replied(Seat from, const schema::ProbeReply& reply) { run_->candidate().replied(from, reply); }
  // Answers as soon as everything is known.
  void tick();
  void give_way(Error why);  // to a run

 private:
  void answer_with(const schema::Vote& vote);
  // facts: of the run that was prepared for it, if there is one.
  Result<schema::ForecastReply> predict(const schema::ForecastRequest& request, const schema::JobSpec& job,
                                        const engine::Model& model, const schema::StartReply* facts) const;
  void answer(schema::ReplyBody reply);

  const RunContext& context_;
  ControlServer& control_;
  std::unique_ptr<Run> run_;
  std::uint64_t token_ = 0;
  bool pictures_ = false;
  std::optional<schema::ForecastRequest> plan_;
};

}  // namespace tg::daemon
