#include "daemon/run/first_record.h"

#include <utility>

#include "kernels/base/log.h"
#include "schema/text.h"

namespace tg::daemon {

void fill_first_status(const RunBeginning& beginning, schema::RunStatus& status) {
  const Prepared& prepared = beginning.prepared;
  status.state = schema::RunState::kRunning;
  status.since_ms = unix_time_ms();
  schema::show_job(beginning.job, status);
  status.exchange = beginning.exchange;
  status.coding = beginning.coding;
  status.step = status.digest_step = prepared.replica->committed_rounds().value();
  status.steps = beginning.job.steps;
  status.parameters = prepared.model.segments.parameter_count();
  status.digest = prepared.initial_digest;
  status.training_samples = prepared.data->train.count();
  status.global_batch = beginning.global_batch;
  status.data_read = prepared.read.summary;
}

RunRecord first_record(const RunBeginning& beginning, const std::string& spec, const schema::RunStatus& status,
                       MemberRecord own, std::vector<std::string> nodes, std::vector<std::string> members,
                       std::vector<std::uint16_t> weights) {
  RunRecord record;
  record.id = status.id;
  record.spec = spec;
  record.seed = beginning.job.seed;
  record.spec_hash = schema::hash_text(spec);
  record.model_hash = beginning.prepared.model_hash;
  record.data_hash = beginning.prepared.data_hash;
  record.initial_digest = status.initial_digest;
  record.node = own.node;
  record.nodes = std::move(nodes);
  record.member_names = std::move(members);
  record.weights = std::move(weights);
  record.own = std::move(own);
  record.global_batch = beginning.global_batch;
  record.status = status;
  return record;
}

MemberRecord member_record(const std::string& node, const Prepared& prepared, const PreparedView& view,
                           const kernels::Kernels& kernels, const engine::ComputeDevice& compute) {
  return {
      node,           view.engine_build,       prepared.threads,   std::string(kernels.name), to_word(compute.engine()),
      compute.name(), to_word(compute.math()), view.engine_choices};
}

}  // namespace tg::daemon
