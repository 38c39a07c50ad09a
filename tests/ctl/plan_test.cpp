// plan: what people and programs read, and link rates.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/format/table.h"
#include "ctl/plan/link_rate.h"
#include "ctl/plan/plan_report.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using nlohmann::ordered_json;

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
  for (const std::uint64_t nodes : {1u, 2u, 64u}) {
    reply.table.push_back({nodes, 64 / std::min<std::uint64_t>(nodes, 64), 64, outcome(0.02, 1.5), outcome(0.01, 3)});
  }
  reply.asked = reply.table[1];
  reply.assumptions = {"all nodes are alike"};
  return reply;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(PlanText, SaysStepsBoundsAndAssumptions) {
  const std::string text = format_forecast(sample_forecast());
  expect_parts(text, {"1 Gbit/s, 941 Mbit/s of payload", "sharded, coding raw, as a start would choose",
                      "bound by    link", "3.00", "all nodes are alike"});
  EXPECT_EQ(bound_of({0, 3, 2, 1}), "computing");
  EXPECT_EQ(bound_of({0, 1, 3, 2}), "processor");
  EXPECT_EQ(bound_of({0, 1, 2, 3}), "link");
}

TEST(PlanText, NoLineWrapsAtEightyColumns) {
  schema::ForecastReply wide = sample_forecast();
  for (schema::ForecastRow& row : wide.table) {
    row.nodes = 127;
    row.local_batch = 65'536;
    for (schema::Outcome* one : {&row.direct, &row.sharded}) *one = outcome(0.9994, 511.9);
  }
  wide.asked = wide.table[0];
  wide.assumptions = {std::string(200, 'w'),
                      "words and words and words and words and words and words and words and so on"};
  for (const std::string& text : {format_forecast(sample_forecast()), format_forecast(wide)}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(schema::text_width(line), kColumns) << line;
  }
}

TEST(PlanJson, HasItsFields) {
  const auto json = ordered_json::parse(format_forecast_json(sample_forecast()));
  EXPECT_EQ(json["schema_version"], 3);
  EXPECT_EQ(json["coding"], "raw");
  EXPECT_EQ(json["asked"]["nodes"], 2);
  EXPECT_EQ(json["asked"]["sharded"]["over_one_node"], 3);
  EXPECT_EQ(json["table"].size(), 3u);
  EXPECT_EQ(json["table"][2]["nodes"], 64);
  EXPECT_EQ(json["assumptions"][0], "all nodes are alike");
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
