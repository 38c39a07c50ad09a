// Measurements and predictions: every field in its place, and every bound kept against whoever sends them.
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

Result<Request> back(const RequestBody& body) { return decode_request(bytes_of(encode_request({1, body}))); }
Result<Reply> back(const ReplyBody& body) { return decode_reply(bytes_of(encode_reply({1, body}))); }

TEST(ControlForecast, FieldsKeepTheirPlaces) {
  const Result<Request> decoded = back(RequestBody(ForecastRequest{"model = lenet\n", 8, 1000, 0.25}));
  ASSERT_TRUE(decoded.ok());
  const auto& request = std::get<ForecastRequest>(decoded->body);
  EXPECT_EQ(request.nodes, 8u);
  EXPECT_EQ(request.line_mbps, 1000);
  EXPECT_EQ(request.cores, 0.25);

  const Result<Reply> bench_reply = back(ReplyBody(sample_bench()));
  ASSERT_TRUE(bench_reply.ok());
  const auto& bench = std::get<BenchReply>(bench_reply->body);
  EXPECT_EQ(bench.cores, 8u);
  EXPECT_EQ(bench.threads, 6u);
  EXPECT_EQ(bench.link_mbps, 938.5);
  ASSERT_EQ(bench.codec.size(), 2u);
  EXPECT_EQ(bench.codec[1].rate, 1.5);
  EXPECT_EQ(bench.compute[0].seconds_per_sample, 450e-6);
  EXPECT_EQ(bench.saved, "/var/lib/tgd/bench.json");

  const Result<Reply> forecast_reply = back(ReplyBody(sample_forecast()));
  ASSERT_TRUE(forecast_reply.ok());
  const auto& forecast = std::get<ForecastReply>(forecast_reply->body);
  EXPECT_TRUE(forecast.measured_now);
  EXPECT_EQ(forecast.asked.nodes, 4u);
  EXPECT_EQ(forecast.asked.sharded.sent_bytes, 20);
  EXPECT_EQ(forecast.asked.ring.speed_up, 46);
  ASSERT_EQ(forecast.table.size(), 2u);
  EXPECT_EQ(forecast.table[1].direct.step, 5);
  EXPECT_EQ(forecast.assumptions[1], "the sun shines");
}

TEST(ControlForecast, RequestsBeyondTheirBoundsAreRefused) {
  const auto refused = [](const std::function<void(ForecastRequest&)>& spoil) {
    ForecastRequest request{"model = lenet\n", 8, 1000, 0.25};
    spoil(request);
    return !back(RequestBody(request)).ok();
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_FALSE(refused([](auto& r) { r.cores = r.line_mbps = 0; })) << "not told";
  EXPECT_TRUE(refused([](auto& r) { r.spec = std::string(kMostSpecBytes + 1, 'a'); }));
  EXPECT_TRUE(refused([](auto& r) { r.nodes = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.nodes = kMostForecastNodes + 1; }));
  EXPECT_TRUE(refused([](auto& r) { r.cores = 1e-9; }));
  for (const double odd : {-1.0, kNotANumber, kEndless, -kEndless, 1e30}) {
    EXPECT_TRUE(refused([odd](auto& r) { r.line_mbps = odd; })) << odd;
    EXPECT_TRUE(refused([odd](auto& r) { r.cores = odd; })) << odd;
  }
}

TEST(ControlForecast, RepliesBeyondTheirBoundsAreRefused) {
  const auto bench_refused = [](const std::function<void(BenchReply&)>& spoil) {
    BenchReply bench = sample_bench();
    spoil(bench);
    return !back(ReplyBody(bench)).ok();
  };
  EXPECT_TRUE(bench_refused([](auto& b) { b.node = "NODE"; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.members = 0; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.members = kMostMembers + 1; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.link_mbps = kNotANumber; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.round_trip_seconds = -1; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.codec[0].rate = kEndless; }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.codec.resize(kMostKernelRates + 1, b.codec[0]); }));
  EXPECT_TRUE(bench_refused([](auto& b) { b.compute.resize(kMostComputeRates + 1, b.compute[0]); }));

  const auto forecast_refused = [](const std::function<void(ForecastReply&)>& spoil) {
    ForecastReply reply = sample_forecast();
    spoil(reply);
    return !back(ReplyBody(reply)).ok();
  };
  EXPECT_TRUE(forecast_refused([](auto& f) { f.cores = 0; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.asked.nodes = 0; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table[1].nodes = kMostForecastNodes + 1; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.asked.direct.step = kNotANumber; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table[0].ring.wire = -1; }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.table.resize(kMostForecastRows + 1, f.asked); }));
  EXPECT_TRUE(forecast_refused([](auto& f) { f.assumptions.resize(kMostAssumptions + 1, "x"); }));
}

TEST(ControlForecast, LongWordsAreCutNotSent) {
  ForecastReply reply = sample_forecast();
  reply.assumptions[0] = std::string(2 * kMostAssumptionBytes, 'a');
  const Result<Reply> decoded = back(ReplyBody(reply));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<ForecastReply>(decoded->body).assumptions[0].size(), kMostAssumptionBytes);
}

}  // namespace
}  // namespace tg::schema
