// Examinations and diagnoses: every field in its place, every bound kept, and the largest of them fits a reply.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "schema/control/control.h"
#include "tests/schema/samples.h"

namespace tg::schema {
namespace {

Result<Request> back(const RequestBody& body) { return decode_request(bytes_of(encode_request({1, body}))); }
Result<Reply> back(const ReplyBody& body) { return decode_reply(bytes_of(encode_reply({1, body}))); }

TEST(ControlDoctor, FieldsKeepTheirPlaces) {
  const auto request = back(RequestBody(ExamineRequest{true, 3, 1000, 42}));
  ASSERT_TRUE(request.ok());
  const auto& examine = std::get<ExamineRequest>(request->body);
  EXPECT_TRUE(examine.local);
  EXPECT_EQ(examine.seconds, 3);
  EXPECT_EQ(examine.line_mbps, 1000);
  EXPECT_EQ(examine.asked_ms, 42);

  const auto reply = back(ReplyBody(sample_examination()));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  const auto& one = std::get<Examination>(reply->body);
  EXPECT_EQ(one.received_ms, 1'700'000'000'002);
  EXPECT_EQ(one.disk_need, 12u);
  EXPECT_EQ(one.memory_need, 14u);
  EXPECT_EQ(one.descriptors_need, 17u);
  EXPECT_EQ(one.data[0].hash, 0xfedcba9876543210);
  EXPECT_EQ(one.unfinished, "disk");
  EXPECT_EQ(one.links[1].mesh, Reach::kSilent);
  EXPECT_EQ(one.links[1].control, Reach::kStranger);
  EXPECT_EQ(one.links[1].refusal, "other keys");
  EXPECT_EQ(one.links[1].mbps, 938.5);

  const auto answer = back(ReplyBody(sample_diagnosis()));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const auto& diagnosis = std::get<Diagnosis>(answer->body);
  EXPECT_EQ(diagnosis.findings[0].fix, "mend the firewall");
  EXPECT_EQ(diagnosis.left_out, 7u);
  EXPECT_EQ(diagnosis.reach[1], Cell::kControl);
  EXPECT_EQ(diagnosis.mbps[1], 938.5F);
  EXPECT_EQ(diagnosis.round_trip_micros[1], 210u);
}

TEST(ControlDoctor, WhatBreaksABoundIsRefused) {
  const auto refused = [](const std::function<void(Examination&, Diagnosis&)>& spoil) {
    Examination one = sample_examination();
    Diagnosis diagnosis = sample_diagnosis();
    spoil(one, diagnosis);
    return !back(ReplyBody(one)).ok() || !back(ReplyBody(diagnosis)).ok();
  };
  EXPECT_FALSE(refused([](auto&, auto&) {}));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.node = ""; }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].peer = "NODE"; }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].mesh = static_cast<Reach>(7); }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].mbps = std::nan(""); }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links.resize(kMostMembers + 1, one.links[0]); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.reach.pop_back(); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.mbps.push_back(1); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.reach[0] = static_cast<Cell>(8); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.findings[0].check = static_cast<Check>(99); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.findings.resize(kMostFindings + 1); }));
  EXPECT_FALSE(back(RequestBody(ExamineRequest{false, kMostExamineSeconds + 1, 0, 0})).ok());
  EXPECT_FALSE(back(RequestBody(ExamineRequest{false, 3, -1, 0})).ok());
}

TEST(ControlDoctor, TheLargestFitAReply) {
  const std::string name(kMostNameBytes, 'n'), sentence(2 * kMostSeenBytes, 's'), place(kMostAddressBytes, 'p');
  Examination one = sample_examination();
  LinkFacts link = one.links[1];
  link.peer = name;
  link.line = link.address = link.from = place;
  link.name_problem = link.problem = link.refusal = link.unmeasured = sentence;
  one.links.assign(kMostMembers, link);
  one.busy = one.configuration = one.key_problem = one.disk_problem = one.memory_problem = sentence;
  one.data_dir = std::string(kMostPathBytes, 'd');
  one.data.assign(kMostDataSets, {name, 1, sentence});
  Diagnosis diagnosis;
  diagnosis.node = name;
  diagnosis.nodes.assign(kMostMembers, name);
  diagnosis.findings.assign(kMostFindings, {Check::kPorts, Verdict::kFail, name, name, sentence, sentence});
  diagnosis.reach.assign(kMostMembers * kMostMembers, Cell::kOk);
  diagnosis.mbps.assign(kMostMembers * kMostMembers, 1);
  diagnosis.round_trip_micros.assign(kMostMembers * kMostMembers, 1);
  for (const ReplyBody& body : {ReplyBody(one), ReplyBody(diagnosis)}) {
    const std::string bytes = encode_reply({1, body});
    EXPECT_LE(bytes.size(), kMostControlBytes);
    const auto decoded = decode_reply(bytes_of(bytes));
    EXPECT_TRUE(decoded.ok()) << decoded.error().message;
  }
}

}  // namespace
}  // namespace tg::schema
