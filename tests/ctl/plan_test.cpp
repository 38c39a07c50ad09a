// bench and plan: what people and programs read, the picture and link rates.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/format/table.h"
#include "ctl/plan/bench_report.h"
#include "ctl/plan/link_rate.h"
#include "ctl/plan/plan_picture.h"
#include "ctl/plan/plan_report.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using nlohmann::ordered_json;

schema::BenchReply sample_bench() {
  schema::BenchReply bench;
  bench.node = "node-a";
  bench.build = "0.1.0";
  bench.kernels = "avx512";
  bench.members = 4;
  bench.cores = 8;
  bench.threads = 8;
  bench.link_mbps = 470;
  bench.round_trip_seconds = 210e-6;
  bench.codec = {{"statistics", 4}, {"encode-codes-raw", 10}};
  bench.compute = {{"lenet", 64, 500e-6, 50}};
  bench.saved = "/state/bench.json";
  return bench;
}

schema::Outcome outcome(double step, double speed_up) {
  schema::Outcome one;
  one.sent_bytes = 1e6;
  one.wire = step / 2;
  one.step = step;
  one.samples_per_second = 64 / step;
  one.speed_up = speed_up;
  return one;
}

schema::ForecastReply sample_forecast() {
  schema::ForecastReply reply;
  reply.node = "node-a";
  reply.model = "lenet";
  reply.compute = schema::Compute::kTrain;
  reply.parameters = 1'256'080;
  reply.line_mbps = 1000;
  reply.payload_mbps = 941;
  reply.cores = 2;
  reply.exchange = "sharded";
  reply.coding = "raw";
  for (const std::uint64_t nodes : {1u, 2u, 128u}) {
    schema::ForecastRow row{
        nodes, 64 / std::min<std::uint64_t>(nodes, 64), 64, outcome(0.02, 1.5), outcome(0.01, 3), outcome(0.08, 0.5)};
    reply.table.push_back(row);
  }
  reply.asked = reply.table[1];
  reply.assumptions = {"all nodes are alike"};
  return reply;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(BenchText, ShowsRates) {
  const std::string text = format_bench(sample_bench());
  expect_parts(text, {"470 Mbit/s of payload towards 3 peers at once", "210 us", "the processor",
                      "statistics        4.00", "encode-codes-raw  10.00", "lenet, batch 64", "/state/bench.json"});
  schema::BenchReply poor = sample_bench();
  poor.link_mbps = 0;
  poor.saved = "";
  expect_parts(format_bench(poor), {"a peer did not answer", "not saved"});
  poor.members = 1;
  expect_parts(format_bench(poor), {"no other node"});
}

TEST(BenchJson, NullWhereNothingIsKnown) {
  const auto json = ordered_json::parse(format_bench_json(sample_bench()));
  EXPECT_EQ(json["schema_version"], 3);
  EXPECT_EQ(json["codec"][0]["gelements_per_second"], 4);
  EXPECT_EQ(json["compute"][0]["gflops"], 50);
  EXPECT_TRUE(json["device"].is_null());
  schema::BenchReply poor = sample_bench();
  poor.link_mbps = poor.round_trip_seconds = 0;
  const auto less = ordered_json::parse(format_bench_json(poor));
  EXPECT_TRUE(less["link"]["payload_mbps"].is_null() && less["link"]["round_trip_seconds"].is_null());
}

TEST(PlanText, SaysStepsRatiosMarksAndAssumptions) {
  const std::string text = format_forecast(sample_forecast());
  expect_parts(text, {"1 Gbit/s, 941 Mbit/s of payload", "sharded, coding raw, as a start would choose", "8.00", "4.00",
                      "128*", "more nodes than a run allows (127)", "all nodes are alike"});
  schema::ForecastReply now = sample_forecast();
  now.measured_now = true;
  expect_parts(format_forecast(now), {"just now"});
}

TEST(PlanText, NoLineWrapsAtEightyColumns) {
  schema::ForecastReply wide = sample_forecast();
  for (schema::ForecastRow& row : wide.table) {
    row.nodes = 512;
    row.local_batch = 65'536;
    for (schema::Outcome* one : {&row.direct, &row.sharded, &row.ring}) *one = outcome(0.9994, 511.9);
  }
  wide.asked = wide.table[0];
  wide.assumptions = {std::string(200, 'w'),
                      "words and words and words and words and words and words and words and so on"};
  schema::BenchReply bench = sample_bench();
  bench.saved = "/" + std::string(300, 's');
  bench.node = std::string(63, 'n');
  bench.build = "0.1.0+" + std::string(100, 'b');
  bench.compute = {{"cifarnet", 16'777'216, 500e-6, 50}};
  for (const std::string& text : {format_forecast(sample_forecast()), format_forecast(wide), format_bench(bench)}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(schema::text_width(line), kColumns) << line;
  }
}

TEST(PlanJson, HasItsFields) {
  const auto json = ordered_json::parse(format_forecast_json(sample_forecast()));
  EXPECT_EQ(json["schema_version"], 3);
  EXPECT_EQ(json["coding"], "raw");
  EXPECT_EQ(json["asked"]["nodes"], 2);
  EXPECT_EQ(json["asked"]["sharded"]["over_ring"], 8);
  EXPECT_EQ(json["table"].size(), 3u);
  EXPECT_EQ(json["table"][2]["nodes"], 128);
  EXPECT_EQ(json["assumptions"][0], "all nodes are alike");
}

// A node that lies: steps of no time would be so many a second that the axis has no end.
TEST(PlanPicture, WhatNoMeshDoesHasNoCurve) {
  schema::ForecastReply reply = sample_forecast();
  for (const schema::Compute compute : {schema::Compute::kReplay, schema::Compute::kTrain}) {
    reply.compute = compute;
    for (const double odd : {1e-320, 1e-300, 1e300}) {
      for (schema::ForecastRow& row : reply.table) row.direct.step = row.direct.samples_per_second = odd;
      const std::string svg = draw_forecast(reply);
      EXPECT_LT(svg.size(), 20'000u) << odd;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << odd;
    }
  }
}

TEST(PlanPicture, IsOneSvgWithThreeCurves) {
  schema::ForecastReply reply = sample_forecast();
  reply.model = "a<b&c";
  const std::string svg = draw_forecast(reply);
  expect_parts(svg, {"<svg xmlns=", "</svg>", "ternary sharded", "ternary direct", "float32 ring", "a&lt;b&amp;c",
                     "samples/s", "beyond a run"});
  std::size_t curves = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++curves;
  EXPECT_EQ(curves, 3u);
  for (const char* noise : {"nan", "inf", "-\""}) EXPECT_EQ(svg.find(noise), std::string::npos) << noise;
  // Nothing but zeros, nothing at all: a frame without curves, and no nonsense in it.
  reply.compute = schema::Compute::kReplay;
  for (schema::ForecastRow& row : reply.table) row.direct = row.sharded = row.ring = {};
  EXPECT_EQ(draw_forecast(reply).find("nan"), std::string::npos);
  reply.table.clear();
  EXPECT_EQ(draw_forecast(reply).find("nan"), std::string::npos);
}

TEST(LinkRate, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<const char*, double>> known = {
      {"1Gbps", 1000}, {"1gbit", 1000}, {"2.5 Gbit/s", 2500}, {"940Mbps", 940}, {"100 mbit/s", 100}, {"500kbps", 0.5}};
  for (const auto& [text, mbps] : known) {
    const Result<double> rate = parse_link_mbps(text);
    ASSERT_TRUE(rate.ok()) << text;
    EXPECT_DOUBLE_EQ(*rate, mbps) << text;
  }
  for (const char* text :
       {"", "1000", "fast", "0Gbps", "-1Gbps", "1 GB/s", "nanGbps", "infGbps", "1e30Gbps", "Gbps", "none"})
    EXPECT_FALSE(parse_link_mbps(text).ok()) << text;
  EXPECT_EQ(format_link(1000), "1 Gbit/s");
  EXPECT_EQ(format_link(2500), "2.50 Gbit/s");
  EXPECT_EQ(format_link(940.4), "940 Mbit/s");
}

}  // namespace
}  // namespace tg::ctl
