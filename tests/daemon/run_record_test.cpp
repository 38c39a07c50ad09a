#include "daemon/store/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "run_samples.h"
#include "schema/limits.h"
#include "tests/schema/described.h"
#include "tests/seeds.h"

namespace tg::daemon {
namespace {

using tests::sample_record;

TEST(RunRecord, EveryFieldComesBack) {
  RunRecord record = schema::filled<RunRecord>();
  record.spec = "model = lenet\nseed = 7\n";
  record.status.id = record.id;
  record.status.initial_digest = record.initial_digest;
  record.own = schema::filled<MemberRecord>();
  record.node = record.own.node;
  schema::MemberStatus row = schema::filled<schema::MemberStatus>();
  row.node = record.node;
  row.phase = schema::Phase::kIdle;  // a record has no phases
  row.phase_ms = row.phase_limit_ms = 0;
  row.states.clear();  // nor the recovery points
  record.status.members = {row};
  record.status.view = record.view;
  record.status.global_batch = record.global_batch;
  record.status.settings = "seed = 7\n";
  record.status.view_step = record.from.step;
  record.status.view_since_ms = 0;
  record.status.next.clear();  // nor the next action
  const Result<RunRecord> read = record_from_json(record_to_json(record));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(schema::told(*read), schema::told(record));
  EXPECT_EQ(schema::told(read->own), schema::told(record.own));
  EXPECT_EQ(read->node, record.node);
  EXPECT_EQ(read->spec, record.spec);
}

TEST(RunRecord, EveryFieldIsWritten) {
  // The status's id, view, global batch and initial digest are the record's own; spec, own, node and status are no
  // fields.
  const std::size_t own = schema::rules_of<RunRecord>().size() - schema::rules_of<schema::RunStatus>().size() + 4;
  EXPECT_EQ(own + 4, schema::member_count<RunRecord>());
  EXPECT_EQ(schema::rules_of<MemberRecord>().size(), schema::member_count<MemberRecord>());
  EXPECT_EQ(schema::rules_of<MemberOutcome>().size(), schema::member_count<MemberOutcome>());
  EXPECT_EQ(schema::rules_of<engine::FileMark>().size(), schema::member_count<engine::FileMark>());
}

// Texts must fit their limits on the wire: an edited record must not make a node's status unreadable.
TEST(RunRecord, TextsBeyondTheirLimitsAreClipped) {
  auto json = nlohmann::json::parse(record_to_json(sample_record("run-1")));
  json["data_warnings"] = {"bell \x07", std::string(3000, 'x'), std::string(3000, 'y'), "z"};
  const Result<RunRecord> read = record_from_json(json.dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->status.data_warnings.substr(0, 10), "bell  \nxxx");
  EXPECT_EQ(read->status.data_warnings.size(), schema::kMaxWarningsBytes);
  json["data_warnings"] = nlohmann::json::array();
  json["members"] = {"node-a", "node b"};
  EXPECT_EQ(record_from_json(json.dump()).error().message, "field members is not a list of names");
}

// It has the keys of the previous version.
TEST(RunRecord, AnOlderRecordIsLineageOneFromTheBeginning) {
  auto json = nlohmann::json::parse(record_to_json(sample_record("run-1")));
  for (const char* key : {"lineage", "from_step", "from", "global_batch", "builds", "stretches"}) {
    EXPECT_TRUE(json.contains(key)) << key;
    json.erase(key);
  }
  const Result<RunRecord> read = record_from_json(json.dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->status.lineage, 1u);
  EXPECT_EQ(read->status.from_step, 0u);
  EXPECT_EQ(read->from, schema::StateId());
  EXPECT_EQ(read->global_batch, 0u);
  EXPECT_EQ(read->intervals, 0u);
}

TEST(RunRecord, HasItsInterval) {
  RunRecord record = sample_record("run-1", "node-a", schema::RunState::kFailed);
  record.key = 77;
  record.view = 3;
  record.status.lineage = 2;
  record.from = {1, 1, 100, 0xab};
  const ViewInterval interval = interval_of(record);
  EXPECT_EQ(interval.lineage, 2u);
  EXPECT_EQ(interval.key, 77u);
  EXPECT_EQ(interval.view, 3u);
  EXPECT_EQ(interval.from.step, 100u);
  EXPECT_EQ(interval.to_step, 120u);
  EXPECT_EQ(interval.members, record.member_names);
  EXPECT_EQ(interval.weights, record.weights);
  EXPECT_EQ(interval.builds, record.builds);
  EXPECT_EQ(interval.ended, "FAILED: a \"reason\"");
}

TEST(RunRecord, TheIntervalOfADepartedNodeEndsWhereItLeft) {
  RunRecord record = sample_record("run-1", "node-a", schema::RunState::kCompleted);
  record.own_row().step = 80;
  EXPECT_EQ(interval_of(record).to_step, 80u);
}

TEST(RunRecord, IsHumanReadable) {
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

TEST(RunRecord, InvalidBytesAndLengthInAReasonAreTolerated) {
  RunRecord record = sample_record("run-1");
  record.status.reason = std::string("\xff\xfe ") + std::string(3 * schema::kMaxReasonBytes, 'x');
  const Result<RunRecord> read = record_from_json(record_to_json(record));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_LE(read->status.reason.size(), schema::kMaxReasonBytes);
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
  EXPECT_EQ(with("since", "1008-12-04T09:00:00.123Z"), "field since is not a time like 2017-12-04T09:00:00.000Z")
      << "format_utc writes no such time";
  EXPECT_EQ(with("id", "../run-1"), "field id is not a run's id");
  EXPECT_EQ(with("members", {"node-a", "NODE \x1b[2J"}), "field members is not a list of names");
  EXPECT_EQ(with("members", nlohmann::json(std::vector<std::string>(schema::kMaxMembers + 1, "node-a"))),
            "field members is not a list of names");
  EXPECT_EQ(with("spec", {{"steps", 300}}), "field spec is not an object of strings");
  EXPECT_EQ(with("lineage", "two"), "field lineage is not a whole number");
  EXPECT_EQ(with("from", 100), "field from is not an object");
  EXPECT_EQ(with("builds", {{"NODE \x1b[2J", "cpu"}}), "field builds is not an object of builds");
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
