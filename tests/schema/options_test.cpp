#include "schema/options/options.h"

#include <gtest/gtest.h>

namespace tg::schema {
namespace {

TEST(Options, AssignmentsKeepOrderAndLines) {
  const auto parsed = parse_assignments("a = 1\n\n# c\nb=\nc = x = y # z\n", "f");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[0].key, "a");
  EXPECT_EQ((*parsed)[1].value, "");
  EXPECT_EQ((*parsed)[1].line, 4);
  EXPECT_EQ((*parsed)[2].value, "x = y");
  EXPECT_TRUE(parse_assignments("", "f")->empty());
}

TEST(Options, NearestIsNearOrNothing) {
  const std::vector<std::string> known{"start", "status", "stop"};
  EXPECT_EQ(nearest("statsu", known), "status");
  EXPECT_EQ(nearest("stpo", known), "stop");
  EXPECT_EQ(nearest("begin", known), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Options, Durations) {
  EXPECT_EQ(*parse_duration_ms("500ms"), 500u);
  EXPECT_EQ(*parse_duration_ms("10s"), 10'000u);
  EXPECT_EQ(*parse_duration_ms("2m"), 120'000u);
  EXPECT_EQ(*parse_duration_ms("1h"), 3'600'000u);
  EXPECT_EQ(*parse_duration_ms("0s"), 0u);
  for (const char* bad :
       {"", "10", "s", "-1s", "1.5s", "10 s", "10sec", "99999999999999999999s", "18446744073709551615h"}) {
    EXPECT_FALSE(parse_duration_ms(bad).ok()) << bad;
  }
  for (const std::uint64_t ms : {0ull, 1ull, 999ull, 1000ull, 1500ull, 60'000ull, 90'000ull, 3'600'000ull}) {
    EXPECT_EQ(*parse_duration_ms(format_duration(ms)), ms);
  }
  EXPECT_EQ(format_duration(60'000), "1m");
  EXPECT_EQ(format_duration(1500), "1500ms");
}

}  // namespace
}  // namespace tg::schema
