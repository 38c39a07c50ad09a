// What programs read, frozen: every --json, run.json (compared as parsed JSON) and the bytes of the control
// messages. A difference is a change of what we promised. TGD_WRITE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "ctl/format/doctor_report.h"
#include "ctl/format/status_json.h"
#include "ctl/models/model_report.h"
#include "ctl/plan/plan_report.h"
#include "daemon/store/run_record.h"
#include "tests/daemon/run_samples.h"
#include "tests/daemon/temporary_directory.h"
#include "tests/schema/samples.h"

namespace tg {
namespace {

constexpr std::int64_t kNowMs = 1'700'000'100'000;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = TGD_SOURCE_DIR "/tests/golden/files/" + name;
  if (std::getenv("TGD_WRITE_GOLDEN") != nullptr) tests::write_text(path, text);
  const std::string golden = tests::read_text(path);
  if (name.ends_with(".json")) {
    EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json::parse(golden)) << name;
  } else {
    EXPECT_EQ(text, golden) << name;
  }
}

// A run that goes on and one that failed, what is not finite, not known, not yet measured.
schema::MeshStatus sample_mesh() {
  auto mesh = std::get<schema::MeshStatus>(schema::sample_replies()[1].body);
  schema::RunStatus odd = mesh.runs[0];
  odd.state = schema::RunState::kRunning;
  odd.loss = std::numeric_limits<double>::quiet_NaN();
  odd.zeros = std::numeric_limits<double>::infinity();
  odd.evaluation_accuracy_5 = 0;
  odd.members[1].wait_share = std::numeric_limits<double>::quiet_NaN();
  odd.members[1].phase_limit_ms = 0;
  odd.reason = "no UTF-8: \xff";
  odd.digest = 0;
  odd.since_ms = 0;
  mesh.runs.push_back(odd);
  return mesh;
}

TEST(Golden, Status) { expect_golden("status.json", ctl::format_status_json(sample_mesh(), kNowMs, 2)); }
TEST(Golden, List) { expect_golden("list.json", ctl::format_list_json(sample_mesh().runs, kNowMs, 2)); }
TEST(Golden, Doctor) { expect_golden("doctor.json", ctl::format_diagnosis_json(schema::sample_diagnosis())); }
TEST(Golden, Models) { expect_golden("models.json", ctl::format_models_json()); }
TEST(Golden, Plan) { expect_golden("plan.json", ctl::format_forecast_json(schema::sample_forecast())); }

TEST(Golden, RunRecord) {
  daemon::RunRecord record = tests::sample_record("run-1");
  expect_golden("run.json", daemon::record_to_json(record));
  record.spec = "b = 2\na=1\n\nz = x = y\n";
  record.status.evaluation_accuracy_5 = 0;
  record.status.loss = std::numeric_limits<double>::quiet_NaN();
  record.status.since_ms = record.fetched_ms = 0;
  record.status.members[0].save = schema::SaveState::kNotSaved;
  record.status.members[0].problem = "the disk is full";
  expect_golden("run-odd.json", daemon::record_to_json(record));
  record.status.evaluated = false;
  record.status.members.clear();
  record.others.clear();
  record.own.engine_choices = "";
  expect_golden("run-bare.json", daemon::record_to_json(record));
}

// Each as a line of hexadecimal digits.
TEST(Golden, ControlMessages) {
  std::string text;
  const auto add = [&](const char* what, std::uint64_t id, const std::string& bytes) {
    text += what + std::to_string(id) + " ";
    for (const char byte : bytes) {
      constexpr const char* kDigits = "0123456789abcdef";
      text += {kDigits[static_cast<unsigned char>(byte) >> 4], kDigits[static_cast<unsigned char>(byte) & 15]};
    }
    text += "\n";
  };
  for (const schema::Request& request : schema::sample_requests())
    add("request ", request.id, schema::encode_request(request));
  for (const schema::Reply& reply : schema::sample_replies()) add("reply ", reply.id, schema::encode_reply(reply));
  expect_golden("control.txt", text);
}

}  // namespace
}  // namespace tg
