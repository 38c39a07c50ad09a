// A record with every field set, for the tests of the run store and of answers made from it.
#pragma once

#include <string>

#include "daemon/store/run_record.h"

namespace tg::tests {

inline daemon::RunRecord sample_record(const std::string& id, const std::string& node = "node-a",
                                       schema::RunState state = schema::RunState::kRunning) {
  daemon::RunRecord record;
  record.id = id;
  record.spec = "model = lenet\nseed = 7\nsteps = 300\n";
  record.seed = 0xfedcba9876543210;
  record.spec_hash = 0x8000000000000001;
  record.model_hash = 2;
  record.data_hash = 3;
  record.initial_digest = 0xffffffffffffffff;
  record.node = node;
  record.member_names = {"node-a", "node-b", "node-c"};
  record.weights = {3, 1, 1000};
  record.own = {
      node,   "cpu oneDNN 2.6.3",       2,      "avx2",
      "cuda", "NVIDIA H100 (device 0)", "tf32", "ip1 forward: algorithm 1, 12 MiB\nip1 evaluation: algorithm 0, 0 MiB"};
  record.global_batch = 64;
  record.builds = {{"node-a", "cpu oneDNN 2.6.3"}, {"node-b", "cpu oneDNN 2.6.3"}};
  record.build = "0.1.0";
  record.checkpoint = "";
  record.others["node-b"] = {schema::SaveState::kNotSaved, "the disk is full"};
  record.fetched_ms = 1'512'378'123'456;
  record.files["model.safetensors"] = {1234, std::string(64, 'a')};
  schema::RunStatus& status = record.status;
  status.id = id;
  status.state = state;
  status.reason = "a \"reason\"";
  status.since_ms = 1'512'378'000'123;
  status.started_ms = 1'512'378'000'001;
  status.model = "lenet";
  status.data = "synthetic";
  status.exchange = "sharded";
  status.coding = "entropy";
  status.gradients = "ternary";
  status.step = 120;
  status.steps = 300;
  status.loss = 0.1234567890123;
  status.learning_rate = 0.01;
  status.evaluated = true;
  status.evaluation_step = 100;
  status.evaluation_accuracy = 0.987;
  status.evaluation_accuracy_5 = 0.999;
  status.evaluation_loss = 0.05;
  status.samples_per_second = 1234.5;
  status.code_bits_per_parameter = 1.06;
  status.sent_bits_per_parameter = 5.5;
  status.sent_bytes_per_step = 860'000;
  status.zeros = 0.93;
  status.parameters = 1'256'080;
  status.digest = 0xabcdef0123456789;
  status.digest_step = 120;
  status.initial_digest = record.initial_digest;
  status.departed = {{"node-d", 1'512'378'000'100, 90, "node-d was shut down"}};
  schema::MemberStatus own;
  own.node = node;
  own.state = state;
  own.step = 120;
  own.digest = 0xabcdef0123456789;
  own.digest_step = 120;
  own.wait_share = 0.25;
  own.data_wait_share = 0.125;
  own.samples = 48;
  own.seniority = 2;
  status.members = {own};
  return record;
}

}  // namespace tg::tests
