// The output of tgctl doctor, for people and for programs.
#include "ctl/format/doctor_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tg::ctl {
namespace {

using schema::Check;
using schema::LinkResult;
using schema::Verdict;

schema::Diagnosis sample() {
  return {"node-a",
          {"node-a", "node-b"},
          {{Check::kNodes, Verdict::kPass, "", "", "2 nodes answer", ""},
           {Check::kPorts, Verdict::kFail, "node-a", "node-b", "node-a does not get to node-b", "mend the firewall"},
           {Check::kClock, Verdict::kFail, "node-b", "", "its clock is 1.5 s ahead", "set it"},
           {Check::kData, Verdict::kSkipped, "node-b", "", "not read: a run is on", ""}},
          0,
          {LinkResult::kSelf, LinkResult::kMesh, LinkResult::kOk, LinkResult::kSelf},
          {0, 0, 938.5F, 0}};
}

TEST(DoctorReport, ForPeople) {
  EXPECT_EQ(format_diagnosis(sample()),
            "CHECK  VERDICT  DETAIL\n"
            "nodes  pass     2 nodes answer\n"
            "ports  fail     node-a does not get to node-b\n"
            "  fix: mend the firewall\n"
            "clock  fail     node-b: its clock is 1.5 s ahead\n"
            "  fix: set it\n"
            "data   skipped  node-b: not read: a run is on\n"
            "\n"
            "FROM \\ TO  node-a  node-b\n"
            "node-a     -       mesh\n"
            "node-b     ok      -\n"
            "mesh: its mesh port cannot be reached\n"
            "\n"
            "2 failed, 1 skipped, via node-a\n");
}

TEST(DoctorReport, ForPrograms) {
  const auto json = nlohmann::ordered_json::parse(format_diagnosis_json(sample()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"schema_version", "node", "passed", "nodes", "findings",
                                            "findings_left_out", "links"}));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(
      json["findings"][1].dump(),
      R"({"check":"ports","verdict":"fail","node":"node-a","peer":"node-b","seen":"node-a does not get to node-b","fix":"mend the firewall"})");
  EXPECT_TRUE(json["findings"][0]["node"].is_null());
  EXPECT_EQ(json["links"].size(), 2u);
  EXPECT_EQ(json["links"][0].dump(), R"({"from":"node-a","to":"node-b","reach":"mesh","payload_mbps":null})");
  EXPECT_EQ(json["links"][1]["payload_mbps"], 938.5);
}

TEST(DoctorReport, SkippedIsNoFailure) {
  schema::Diagnosis diagnosis = sample();
  EXPECT_FALSE(all_pass(diagnosis));
  diagnosis.findings.erase(diagnosis.findings.begin() + 1);
  EXPECT_FALSE(all_pass(diagnosis));
  diagnosis.findings.erase(diagnosis.findings.begin() + 1);
  EXPECT_TRUE(all_pass(diagnosis));
  diagnosis.left_out = 1;
  EXPECT_FALSE(all_pass(diagnosis));
}

TEST(DoctorReport, TheOutlookHasTheTime) {
  EXPECT_EQ(examination_outlook(4, 3), "checking 4 nodes (about 14 s; --no-bandwidth is faster)");
  EXPECT_EQ(examination_outlook(4, 0), "checking 4 nodes (up to 3 s)");
  EXPECT_EQ(examination_outlook(1, 3), "checking 1 node (up to 3 s)");
}

}  // namespace
}  // namespace tg::ctl
