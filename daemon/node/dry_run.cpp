#include "daemon/node/dry_run.h"

#include <utility>
#include <vector>

#include "daemon/forecast/code_bits.h"
#include "daemon/forecast/forecast.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_data.h"
#include "engine/resources/processors.h"
#include "kernels/base/log.h"
#include "kernels/base/random.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

StepQuestion question_of(const RunContext& context, const engine::Model& model, const schema::JobSpec& job) {
  StepQuestion question{model, job};
  question.threads = static_cast<double>(context.threads_for(job));
  question.cores = static_cast<double>(engine::usable_processors());
  question.on_device = context.machine.compute.accelerator() != nullptr;
  question.zeros = zeros_of(job).share;
  return question;
}

double sample_seconds(const schema::StartReply& facts) {
  return facts.compute_seconds / static_cast<double>(facts.local_batch);
}

// The model before the data are read: for the usual data of that kind, or as published if it does not fit them.
Result<engine::Model> expected(const schema::JobSpec& job) {
  Result<engine::Model> model = engine::make_model(expected_model(job));
  if (!model) model = engine::make_model(model_options(job));
  return model;
}

}  // namespace

void add_prediction(schema::StartReply& facts, const RunContext& context, const Run& run,
                    const schema::Commit& choice) {
  const engine::Model model = engine::make_model(run.model()).value();
  StepQuestion question = question_of(context, model, run.job());
  question.nodes = facts.members;
  if (run.job().compute == schema::Compute::kTrain) question.sample_seconds = sample_seconds(facts);
  question.payload_mbps = facts.link_mbps;
  if (!schema::uneven_shares(facts.shares).empty()) question.own_samples = facts.local_batch;
  facts.link_mbps = payload_mbps(question);
  if (facts.members > 1 && facts.link_mbps <= 0)
    facts.unpredicted = "no peer answered when the link was measured; set link-mbps in the job";
  else
    facts.predicted = predict_step(question, choice);
}

void DryRun::begin(std::uint64_t token, RunIdentity identity, schema::JobSpec job, bool pictures) {
  token_ = token;
  pictures_ = pictures;
  if (identity.members.empty()) identity.members = context_.self.names.places();
  const View view = View::of(identity.members, identity.weights);
  run_ = std::make_unique<Run>(context_, std::move(identity), std::move(job), view);
}

void DryRun::plan(std::uint64_t token, const schema::ForecastRequest& request, const std::string& busy) {
  const auto refuse = [&](Error error) { control_.reply(token, std::move(error)); };
  Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job) return refuse(job.error());
  if (request.line_mbps > 0) job->link_mbps = request.line_mbps;
  if (const Status valid = check_plan(*job, request.nodes); !valid) return refuse(valid.error());
  const Result<engine::Model> model = expected(*job);
  if (!model) return refuse(model.error());
  const bool times = job->compute == schema::Compute::kTrain && request.compute_seconds == 0;
  if (!times && job->link_mbps > 0) {
    Result<schema::ForecastReply> reply = predict(request, *job, *model, nullptr);
    return reply ? control_.reply(token, *std::move(reply)) : refuse(reply.error());
  }
  if (!busy.empty())
    return refuse({ErrorKind::kRefused, context_.self.config.node + " cannot measure now: " + busy +
                                            "; ask again later, or give --link and --compute"});
  const std::size_t nodes = context_.self.names.size();
  RunIdentity identity{draw_bits(), schema::draw_run_id(to_word(job->model), unix_time_ms(), draw_bits()),
                       schema::canonical_job(*job), job->start_timeout_ms};
  // This node computes as many samples as it would in the requested mesh.
  const std::uint64_t batch = schema::resolved_global_batch(*job, request.nodes);
  identity.global_batch = request.nodes == nodes ? batch : (batch + request.nodes - 1) / request.nodes * nodes;
  identity.weights =
      request.nodes == nodes ? context_.weights() : Per<Seat, std::uint16_t>(context_.self.names.kMaxNodes, 1);
  plan_ = request;
  begin(token, std::move(identity), *std::move(job), false);
}

void DryRun::tick() {
  if (!run_) return;
  if (const std::optional<schema::Vote> vote = run_->preparation().take_vote()) on_vote(*vote);
}

void DryRun::on_vote(const schema::Vote& vote) {
  if (!vote.accepted) return answer(Error{vote.kind, vote.message});
  // The other members are assumed to be like this one.
  const std::vector<schema::Vote> votes(run_->view().view().size(), vote);
  const schema::Commit choice = choose_exchange(exchange_preference(run_->job()), votes).commit;
  schema::StartReply reply = run_->facts(choice);
  if (plan_) {
    Result<schema::ForecastReply> plan =
        predict(*plan_, run_->job(), engine::make_model(run_->model()).value(), &reply);
    return plan ? answer(*std::move(plan)) : answer(plan.error());
  }
  if (pictures_) {
    if (const Status shown = run_->show_data(reply); !shown.ok()) return answer(shown.error());
  } else {
    add_prediction(reply, context_, *run_, choice);
  }
  answer(std::move(reply));
}

Result<schema::ForecastReply> DryRun::predict(const schema::ForecastRequest& request, const schema::JobSpec& job,
                                              const engine::Model& model, const schema::StartReply* facts) const {
  StepQuestion question = question_of(context_, model, job);
  question.nodes = request.nodes;
  const std::string& node = context_.self.config.node;
  std::vector<std::string> assumed = {"all nodes are like " + node + ", with a full-duplex link each",
                                      "zeros: " + zeros_of(job).source};
  const bool trains = job.compute == schema::Compute::kTrain;
  if (facts != nullptr) {
    question.payload_mbps = facts->link_mbps;
    if (trains) question.sample_seconds = sample_seconds(*facts);
    const std::string uneven = schema::uneven_shares(facts->shares);
    if (!uneven.empty()) {
      question.own_samples = facts->local_batch;
      assumed.push_back("weights split the batch of " + std::to_string(request.nodes) +
                        " nodes, and each computes as long for its part as " + node + " for its own: " + uneven);
    }
    if (trains) assumed.push_back("data: " + facts->data_read);
  } else if (trains) {
    assumed.push_back("data assumed: " + std::to_string(model.input.channels) + "x" +
                      std::to_string(model.input.height) + "x" + std::to_string(model.input.width) + " and " +
                      std::to_string(model.classes) + " classes; a start reads them");
  }
  if (trains && request.compute_seconds > 0) {
    const std::uint64_t batch = schema::resolved_global_batch(job, request.nodes);
    question.sample_seconds =
        request.compute_seconds / static_cast<double>((batch + request.nodes - 1) / request.nodes);
  }
  if (trains) assumed.push_back("a sample takes as long to compute in a batch of any size");
  Result<schema::ForecastReply> reply = plan_reply(question);
  if (!reply) return reply;
  reply->node = node;
  for (const std::string& line : assumed)
    reply->assumptions.push_back(schema::clip_text(line, schema::kMaxAssumptionBytes));
  return reply;
}

void DryRun::cancel(Error why) {
  if (run_) answer(std::move(why));
}

void DryRun::answer(schema::ReplyBody reply) {
  control_.reply(token_, std::move(reply));
  plan_.reset();
  if (!run_) return;
  run_.reset();
  context_.news.progress.phase = schema::Phase::kIdle;
}

}  // namespace tg::daemon
