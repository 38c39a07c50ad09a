// Examinations and diagnoses: every bound is kept.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "schema/control/control.h"
#include "tests/schema/samples.h"

namespace tg::schema {
namespace {

Result<Request> back(const RequestBody& body) { return decode_request(bytes_of(encode_request({1, body}))); }
Result<Reply> back(const ReplyBody& body) { return decode_reply(bytes_of(encode_reply({1, body}))); }

TEST(ControlDoctor, ValuesOutOfBoundsAreRefused) {
  const auto refused = [](const std::function<void(Examination&, Diagnosis&)>& spoil) {
    Examination one = sample_examination();
    Diagnosis diagnosis = sample_diagnosis();
    spoil(one, diagnosis);
    return !back(ReplyBody(one)).ok() || !back(ReplyBody(diagnosis)).ok();
  };
  EXPECT_FALSE(refused([](auto&, auto&) {}));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.node = ""; }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].peer = "NODE"; }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].mesh = static_cast<Reach>(8); }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links[0].mbps = std::nan(""); }));
  EXPECT_TRUE(refused([](auto& one, auto&) { one.links.resize(kMaxMembers + 1, one.links[0]); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.reach.pop_back(); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.mbps.push_back(1); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.reach[0] = static_cast<LinkResult>(8); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.findings[0].check = static_cast<Check>(99); }));
  EXPECT_TRUE(refused([](auto&, auto& all) { all.findings.resize(kMaxFindings + 1); }));
  EXPECT_FALSE(back(RequestBody(ExamineRequest{false, kMaxExamineSeconds + 1, 0, 0})).ok());
  EXPECT_FALSE(back(RequestBody(ExamineRequest{false, 3, -1, 0})).ok());
}

}  // namespace
}  // namespace tg::schema
