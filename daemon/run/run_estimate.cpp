// What a run says of itself before it begins: its vote, and the answer to a start or a dry run.
#include <algorithm>

#include "daemon/membership/choose_exchange.h"
#include "daemon/run/run.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// The exchange hides behind backward, which is two thirds of the computing.
double predicted_step(const schema::PlanReply& plan) {
  constexpr double kBackward = 2.0 / 3;
  const double exchange = std::max(plan.wire_seconds, plan.codec_seconds);
  return plan.compute_seconds + std::max(0.0, exchange - kBackward * plan.compute_seconds);
}

}  // namespace

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
      static_cast<std::uint32_t>(engine::share_of(global_batch(), static_cast<int>(context_.config.seat().index()),
                                                  static_cast<int>(context_.names.size()))
                                     .count);
  vote.link_mbps = probe_.mbps();
  for (const schema::Commit& choice : kChoices) {
    const Plan plan = make_plan(prepared_->model.segments, plan_options(job_, context_.names.size(), choice));
    vote.codec_seconds.push_back(codec_seconds(plan, prepared_->codec, expected_zeros(job_)));
    vote.sent_bits.push_back(predict_traffic(plan, expected_zeros(job_)).sent_bits);
  }
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
  reply.compute_seconds = prepared_->step_seconds;
  reply.single_node_seconds =
      prepared_->step_seconds * static_cast<double>(reply.global_batch) / static_cast<double>(reply.local_batch);
  const double bits = predict_traffic(plan, expected_zeros(job_)).sent_bits;
  reply.sent_bits_per_parameter = bits / static_cast<double>(reply.parameters);
  reply.link_mbps = job_.link_mbps > 0 ? job_.link_mbps : probe_.mbps();
  reply.wire_seconds = reply.link_mbps > 0 ? bits / (reply.link_mbps * 1e6) : 0;
  reply.codec_seconds = codec_seconds(plan, prepared_->codec, expected_zeros(job_));
  reply.speed_up = reply.single_node_seconds / predicted_step(reply);
  reply.memory_bytes = member_bytes(job_, prepared_->model.segments, plans, workers_for(context_.threads_for(job_)));
  return reply;
}

}  // namespace tg::daemon
