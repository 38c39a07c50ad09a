// A timeline is bounded, and counts what it dropped.
#include "daemon/step/threads/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "temporary_directory.h"

namespace tg::daemon {
namespace {

TEST(Timeline, SpansBeyondTheBoundAreOnlyCounted) {
  const tests::TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.json";
  Timeline timeline;
  timeline.start("node-a", 0);
  const auto now = Timeline::Clock::now();
  for (std::uint64_t i = 0; i < 2 * Timeline::kMaxSpans; ++i)
    timeline.add(Timeline::Track::kNode, "wait", i, now, now, {1, 1000});
  ASSERT_TRUE(timeline.write(path).ok());
  const auto trace = nlohmann::json::parse(tests::read_text(path));
  EXPECT_EQ(trace["otherData"]["spans_left_out"].get<std::size_t>(), Timeline::kMaxSpans);
  std::size_t spans = 0;
  std::uint64_t last = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") ++spans, last = event["args"]["step"].get<std::uint64_t>();
  EXPECT_EQ(spans, Timeline::kMaxSpans);
  EXPECT_EQ(last, Timeline::kMaxSpans - 1);

  timeline.start("node-a", 0);
  timeline.add(Timeline::Track::kNode, "wait", 7, now, now);
  ASSERT_TRUE(timeline.write(path).ok());
  EXPECT_EQ(nlohmann::json::parse(tests::read_text(path))["otherData"]["spans_left_out"].get<std::size_t>(), 0u);
}

}  // namespace
}  // namespace tg::daemon
