// What a run says of itself before it begins: its vote, and the facts that a start or a dry run is answered with.
#include "daemon/run/run.h"
#include "kernels/base/check.h"

namespace tg::daemon {
schema::Vote ActiveRun::vote() const {
  schema::Vote vote;
  vote.spec_hash = schema::job_hash(job_);
  if (!preparation_->ok()) {
    vote.kind = preparation_->error().kind;
    vote.message = preparation_->error().message;
    return vote;
  }
  vote.accepted = true;
  vote.model_hash = prepared_->model_hash;
  vote.data_hash = prepared_->data_hash;
  vote.state_hash = prepared_->initial_digest;
  vote.step_seconds = prepared_->step_seconds;
  vote.local_batch =
      static_cast<std::uint32_t>(engine::share_of(global_batch(), static_cast<int>(context_.config.rank()),
                                                  static_cast<int>(context_.names.size()))
                                     .count);
  vote.link_mbps = probe_.mbps();
  vote.workers = static_cast<std::uint16_t>(workers_for(context_.threads_for(job_)));
  return vote;
}

schema::PlanReply ActiveRun::plan_reply(const schema::Commit& choice) const {
  TG_CHECK(prepared_ != nullptr);
  const Plans plans = plans_of(job_, prepared_->model.segments, context_.names.size(), choice);
  const Plan& plan = plans.plan;
  const schema::Vote own = vote();
  schema::PlanReply reply;
  reply.run_id = identity_.id;
  reply.parameters = prepared_->model.segments.parameter_count();
  reply.members = context_.names.size();
  reply.global_batch = global_batch();
  reply.local_batch = own.local_batch;
  reply.exchange = plan.sharded() ? "sharded" : "direct";
  reply.coding = plan.coding == schema::Coding::kEntropy ? "entropy" : "raw";
  reply.memory_bytes = member_bytes(job_, prepared_->model.segments, plans, workers_for(context_.threads_for(job_)));
  reply.compute_seconds = prepared_->step_seconds;
  reply.link_mbps = probe_.mbps();
  return reply;
}

}  // namespace tg::daemon
