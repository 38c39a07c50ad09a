// A dry run prepares a run as a start does, which times its computing and measures the link, but never begins it. It
// answers `start --dry-run` with the facts and a prediction, and `plan` with predictions for other meshes. One dry run
// at a time. Node's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/control/control_server.h"
#include "daemon/run/run.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

// Adds to the facts how long a step of a prepared run will take with this choice.
void add_prediction(schema::StartReply& facts, const RunContext& context, const Run& run, const schema::Commit& choice);

class DryRun {
 public:
  // Both arguments outlive the object.
  DryRun(const RunContext& context, ControlServer& control) : context_(context), control_(control) {}

  bool is_active() const { return run_ != nullptr; }
  bool has_run_key(std::uint64_t key) const { return run_ && run_->identity().run_key == key; }
  // pictures: show some of the data instead of a prediction.
  void begin(std::uint64_t token, RunIdentity identity, schema::JobSpec job, bool pictures);
  // Prepares a run only if the request lacks the computing time or the link's rate. busy: why nothing can be prepared
  // now;
  // "" = the node is free.
  void plan(std::uint64_t token, const schema::ForecastRequest& request, const std::string& busy);
  void on_prepared(Result<std::shared_ptr<const PreparedView>> result) { run_->on_prepared(std::move(result)); }
  void on_probe_reply(Seat from, const schema::ProbeReply& reply) { run_->preparation().on_probe_reply(from, reply); }
  // Answers once everything is known.
  void tick();
  void cancel(Error why);  // a run begins

 private:
  void on_vote(const schema::Vote& vote);
  // facts: those of the prepared run, or null.
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
