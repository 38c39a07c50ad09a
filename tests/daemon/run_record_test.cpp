#include "daemon/store/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "run_samples.h"
#include "schema/limits.h"
#include "tests/seeds.h"

namespace tg::daemon {
namespace {

using tests::sample_record;

void expect_same(const RunRecord& a, const RunRecord& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.spec, b.spec);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.spec_hash, b.spec_hash);
  EXPECT_EQ(a.model_hash, b.model_hash);
  EXPECT_EQ(a.data_hash, b.data_hash);
  EXPECT_EQ(a.initial_digest, b.initial_digest);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.member_names, b.member_names);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.own.node, b.own.node);
  EXPECT_EQ(a.own.engine_build, b.own.engine_build);
  EXPECT_EQ(a.own.threads, b.own.threads);
  EXPECT_EQ(a.own.kernels, b.own.kernels);
  EXPECT_EQ(a.own.engine, b.own.engine);
  EXPECT_EQ(a.own.device, b.own.device);
  EXPECT_EQ(a.own.math, b.own.math);
  EXPECT_EQ(a.own.engine_choices, b.own.engine_choices);
  EXPECT_EQ(a.view, b.view);
  EXPECT_EQ(a.build, b.build);
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.others, b.others);
  EXPECT_EQ(a.checkpoint, b.checkpoint);
  EXPECT_EQ(a.fetched_ms, b.fetched_ms);
  const schema::RunStatus &s = a.status, &t = b.status;
  EXPECT_EQ(s.id, t.id);
  EXPECT_EQ(s.state, t.state);
  EXPECT_EQ(s.reason, t.reason);
  EXPECT_EQ(s.since_ms, t.since_ms);
  EXPECT_EQ(s.started_ms, t.started_ms);
  EXPECT_EQ(s.model, t.model);
  EXPECT_EQ(s.data, t.data);
  EXPECT_EQ(s.exchange, t.exchange);
  EXPECT_EQ(s.coding, t.coding);
  EXPECT_EQ(s.gradients, t.gradients);
  EXPECT_EQ(s.step, t.step);
  EXPECT_EQ(s.steps, t.steps);
  EXPECT_EQ(s.loss, t.loss);
  EXPECT_EQ(s.learning_rate, t.learning_rate);
  EXPECT_EQ(s.evaluated, t.evaluated);
  EXPECT_EQ(s.evaluation_step, t.evaluation_step);
  EXPECT_EQ(s.evaluation_accuracy, t.evaluation_accuracy);
  EXPECT_EQ(s.evaluation_accuracy_5, t.evaluation_accuracy_5);
  EXPECT_EQ(s.evaluation_loss, t.evaluation_loss);
  EXPECT_EQ(s.samples_per_second, t.samples_per_second);
  EXPECT_EQ(s.code_bits_per_parameter, t.code_bits_per_parameter);
  EXPECT_EQ(s.sent_bits_per_parameter, t.sent_bits_per_parameter);
  EXPECT_EQ(s.sent_bytes_per_step, t.sent_bytes_per_step);
  EXPECT_EQ(s.zeros, t.zeros);
  EXPECT_EQ(s.parameters, t.parameters);
  EXPECT_EQ(s.digest, t.digest);
  EXPECT_EQ(s.digest_step, t.digest_step);
  EXPECT_EQ(s.initial_digest, t.initial_digest);
  ASSERT_EQ(s.members.size(), 1u);
  ASSERT_EQ(t.members.size(), 1u);
  EXPECT_EQ(s.members[0].node, t.members[0].node);
  EXPECT_EQ(s.members[0].state, t.members[0].state);
  EXPECT_EQ(s.members[0].step, t.members[0].step);
  EXPECT_EQ(s.members[0].digest, t.members[0].digest);
  EXPECT_EQ(s.members[0].digest_step, t.members[0].digest_step);
  EXPECT_EQ(s.members[0].wait_share, t.members[0].wait_share);
  EXPECT_EQ(s.members[0].data_wait_share, t.members[0].data_wait_share);
}

TEST(RunRecord, EveryFieldComesBack) {
  const RunRecord record = sample_record("run-1");
  const Result<RunRecord> read = record_from_json(record_to_json(record));
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_same(record, *read);
}

TEST(RunRecord, IsReadableForPeople) {
  const auto json = nlohmann::json::parse(record_to_json(sample_record("run-1")));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["since"], "2017-12-04T09:00:00.123Z");
  EXPECT_EQ(json["spec"]["steps"], "300");
  EXPECT_EQ(json["digest"], "abcdef0123456789");
  EXPECT_EQ(json["hashes"]["spec"], "8000000000000001");
  EXPECT_EQ(json["members"], (nlohmann::json{"node-a", "node-b", "node-c"}));
  EXPECT_EQ(json["own"]["kernels"], "avx2");
  EXPECT_EQ(json["own"]["engine_choices"],
            (nlohmann::json{"ip1 forward: algorithm 1, 12 MiB", "ip1 evaluation: algorithm 0, 0 MiB"}));
}

TEST(RunRecord, LossThatIsNotFiniteIsNull) {
  RunRecord record = sample_record("run-1");
  record.status.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = record_to_json(record);
  EXPECT_TRUE(nlohmann::json::parse(text)["loss"].is_null());
  const Result<RunRecord> read = record_from_json(text);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::isnan(read->status.loss));
}

TEST(RunRecord, ForeignBytesAndLengthInAReasonDoNotCostTheRecord) {
  RunRecord record = sample_record("run-1");
  record.status.reason = std::string("\xff\xfe ") + std::string(3 * schema::kMostReasonBytes, 'x');
  const Result<RunRecord> read = record_from_json(record_to_json(record));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_LE(read->status.reason.size(), schema::kMostReasonBytes);
  EXPECT_TRUE(read->status.reason.ends_with("xxx"));
}

TEST(RunRecord, AWrongTypeIsNamed) {
  const std::string good = record_to_json(sample_record("run-1"));
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(good);
    json[key] = value;
    const Result<RunRecord> read = record_from_json(json.dump());
    return read.ok() ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(with("step", 121), "read");
  EXPECT_EQ(with("step", -1), "field step is not a whole number");
  EXPECT_EQ(with("step", "12"), "field step is not a whole number");
  EXPECT_EQ(with("state", "ASLEEP"), "field state is not a state of a run");
  EXPECT_EQ(with("state", nullptr), "field state is not a string");
  EXPECT_EQ(with("digest", "12"), "field digest is not 16 hexadecimal digits");
  EXPECT_EQ(with("digest", "abcdef012345678g"), "field digest is not 16 hexadecimal digits");
  EXPECT_EQ(with("since", "2017-02-30T09:00:00.000Z"), "field since is not a time like 2017-12-04T09:00:00.000Z");
  EXPECT_EQ(with("id", "../run-1"), "field id is not a run's id");
  EXPECT_EQ(with("members", {"node-a", "NODE \x1b[2J"}), "field members is not a list of names");
  EXPECT_EQ(with("members", nlohmann::json(std::vector<std::string>(schema::kMostMembers + 1, "node-a"))),
            "field members is not a list of names");
  EXPECT_EQ(with("spec", {{"steps", 300}}), "field spec is not an object of strings");
  EXPECT_EQ(with("hashes", "none"), "field hashes is not an object");
  EXPECT_EQ(with("schema_version", 0), "schema_version is 0, this tgd reads 1");
  EXPECT_EQ(with("schema_version", 2), "schema_version is 2, this tgd reads 1; a newer tgd wrote it, and reads it");
}

TEST(RunRecord, DamagedTextNeverThrows) {
  const std::string good = record_to_json(sample_record("run-1"));
  for (std::size_t length = 0; length + 2 < good.size(); ++length) {
    EXPECT_FALSE(record_from_json(good.substr(0, length)).ok()) << length;
  }
  std::size_t refused = 0;
  for (const std::uint64_t seed : seeds(3000)) {
    TG_SEED(seed);
    std::mt19937_64 random(seed);
    std::string damaged = good;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
    const Result<RunRecord> read = record_from_json(damaged);
    if (!read.ok()) {
      ++refused;
      EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_FALSE(record_from_json(std::string(200'000, '[')).ok());
}

}  // namespace
}  // namespace tg::daemon
