// Predictions: every bound holds for any sender.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "schema/control/control.h"
#include "tests/schema/samples.h"

namespace tg::schema {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();

Result<Request> sent_and_read(const RequestBody& body) { return decode_request(bytes_of(encode_request({1, body}))); }
Result<Reply> sent_and_read(const ReplyBody& body) { return decode_reply(bytes_of(encode_reply({1, body}))); }

TEST(ControlForecast, RequestsOutOfBoundsAreRefused) {
  const auto refused = [](const std::function<void(ForecastRequest&)>& spoil) {
    ForecastRequest request{"model = lenet\n", 8, 1000, 0.08};
    spoil(request);
    return !sent_and_read(RequestBody(request)).ok();
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_FALSE(refused([](auto& r) { r.compute_seconds = r.line_mbps = 0; })) << "not given";
  EXPECT_TRUE(refused([](auto& r) { r.spec = std::string(kMaxSpecBytes + 1, 'a'); }));
  EXPECT_TRUE(refused([](auto& r) { r.nodes = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.nodes = kMaxMembers + 1; }));
  for (const double odd : {-1.0, kNotANumber, kEndless, -kEndless, 1e30}) {
    EXPECT_TRUE(refused([odd](auto& r) { r.line_mbps = odd; })) << odd;
    EXPECT_TRUE(refused([odd](auto& r) { r.compute_seconds = odd; })) << odd;
  }
}

TEST(ControlForecast, RepliesOutOfBoundsAreRefused) {
  const auto forecast_refused = [](const std::function<void(ForecastReply&)>& spoil) {
    ForecastReply reply = sample_forecast();
    spoil(reply);
    return !sent_and_read(ReplyBody(reply)).ok();
  };
  EXPECT_TRUE(forecast_refused([](auto& f) { f.cores = -1; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.asked.nodes = 0; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table[1].nodes = kMaxMembers + 1; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.asked.direct.step = kNotANumber; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table[0].sharded.wire = -1; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table.resize(kMaxForecastRows + 1, f.asked); }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.assumptions.resize(kMaxAssumptions + 1, "x"); }));
}

TEST(ControlForecast, LongWordsAreCutNotSent) {
  ForecastReply reply = sample_forecast();
  reply.assumptions[0] = std::string(2 * kMaxAssumptionBytes, 'a');
  const Result<Reply> decoded = sent_and_read(ReplyBody(reply));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<ForecastReply>(decoded->body).assumptions[0].size(), kMaxAssumptionBytes);
}

}  // namespace
}  // namespace tg::schema
