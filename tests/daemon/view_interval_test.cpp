// views.jsonl has a line for each interval, whatever a crash leaves of the last one.
#include "daemon/store/view_interval.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/storage/disk_fault.h"
#include "temporary_directory.h"
#include "tests/schema/described.h"
#include "tests/seeds.h"

namespace tg::daemon {
namespace {

using tests::read_text;
using tests::write_text;

class ViewIntervalTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }
  static ViewInterval interval(std::uint32_t lineage, std::uint32_t view = 1) {
    ViewInterval made;
    made.lineage = lineage;
    made.key = 70 + lineage;
    made.view = view;
    made.from = {lineage - 1, 1, 100, 0xab};
    made.to_step = 200;
    made.members = {"node-a", "node-b"};
    made.weights = {1, 3};
    made.builds = {{"node-a", "cpu oneDNN 2.6.3"}};
    made.ended = "INTERRUPTED: node-a ended";
    return made;
  }
  std::uint64_t add(const ViewInterval& one) {
    const Result<std::uint64_t> lines = add_interval(path, one);
    EXPECT_TRUE(lines.ok()) << (lines ? "" : lines.error().message);
    return lines ? *lines : 0;
  }
  std::string lineages() const {
    std::string text;
    for (const ViewInterval& one : intervals_in(path))
      text += std::to_string(one.lineage) + "." + std::to_string(one.view) + " ";
    return text;
  }

  tests::TemporaryDirectory directory;
  const std::string path = directory.path() + "/views.jsonl";
};

TEST_F(ViewIntervalTest, EveryFieldComesBack) {
  const ViewInterval made = schema::filled<ViewInterval>();
  const Result<ViewInterval> read = interval_from_line(interval_to_line(made));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(schema::told(*read), schema::told(made));
  EXPECT_EQ(schema::rules_of<ViewInterval>().size(), schema::member_count<ViewInterval>());
  EXPECT_EQ(schema::rules_of<schema::StateId>().size(), schema::member_count<schema::StateId>());
  EXPECT_EQ(
      interval_to_line(interval(2)),
      R"({"lineage":2,"key":"0000000000000048","view":1,"from":{"lineage":1,"view":1,"step":100,)"
      R"("digest":"00000000000000ab"},"to_step":200,"members":["node-a","node-b"],"weights":[1,3],)"
      R"("builds":{"node-a":"cpu oneDNN 2.6.3"},"settings":{},"unasked":false,"ended":"INTERRUPTED: node-a ended"})");
}

TEST_F(ViewIntervalTest, LinesAreAddedAndTheSameIntervalIsOneLine) {
  EXPECT_EQ(lineages(), "") << "there is no file";
  EXPECT_EQ(add(interval(1)), 1u);
  EXPECT_EQ(add(interval(1)), 1u);
  EXPECT_EQ(add(interval(1, 2)), 2u);
  EXPECT_EQ(add(interval(2)), 3u);
  EXPECT_EQ(lineages(), "1.1 1.2 2.1 ");
  ViewInterval ended = interval(2);
  ended.ended = "COMPLETED";
  EXPECT_EQ(add(ended), 3u);
  EXPECT_EQ(lineages(), "1.1 1.2 2.1 ");
  EXPECT_EQ(intervals_in(path).back().ended, "COMPLETED");
  EXPECT_EQ(read_text(path), interval_to_line(interval(1)) + "\n" + interval_to_line(interval(1, 2)) + "\n" +
                                 interval_to_line(ended) + "\n");
}

TEST_F(ViewIntervalTest, TheFirstViewOfALineageHasAllItsNodes) {
  EXPECT_FALSE(first_view_in(path, 1));
  ViewInterval smaller = interval(2, 2);
  smaller.members = {"node-b"};
  smaller.weights = {3};
  for (const ViewInterval& one : {interval(1), interval(2), smaller, interval(3)}) add(one);
  const std::optional<ViewInterval> first = first_view_in(path, 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->members, (std::vector<std::string>{"node-a", "node-b"}));
  EXPECT_EQ(first->key, 72u);
  EXPECT_FALSE(first_view_in(path, 4));
}

TEST_F(ViewIntervalTest, ARunWithoutProgressIsKnownByItsRepeatedStart) {
  const auto from = [](std::uint32_t lineage, std::uint64_t step, std::uint64_t digest = 5, std::uint32_t view = 1) {
    ViewInterval one = interval(lineage, view);
    one.from = {lineage - 1, 1, step, digest};
    return one;
  };
  std::vector<ViewInterval> past = {from(1, 0), from(2, 0), from(3, 0)};
  EXPECT_FALSE(repeated_start(past, 3)) << "its start is no return";
  past.push_back(from(4, 0));
  EXPECT_EQ(repeated_start(past, 3), past.back().from);
  past.push_back(from(4, 30, 6, 2));  // a member left meanwhile
  EXPECT_TRUE(repeated_start(past, 3));
  past.push_back(from(5, 40));
  EXPECT_FALSE(repeated_start(past, 3));
  past.push_back(from(6, 40, 7));
  past.push_back(from(7, 40));
  EXPECT_FALSE(repeated_start(past, 2)) << "one step, other bits";
}

TEST_F(ViewIntervalTest, ATornLastLineIsReplaced) {
  const std::string line = interval_to_line(interval(2));
  for (std::size_t length = 0; length <= line.size(); ++length) {
    write_text(path, interval_to_line(interval(1)) + "\n" + line.substr(0, length));
    EXPECT_EQ(lineages(), "1.1 ") << length;
    EXPECT_EQ(add(interval(2)), 2u);
    EXPECT_EQ(lineages(), "1.1 2.1 ") << length;
  }
  // Torn after the interval that is written again.
  write_text(path, interval_to_line(interval(1)) + "\n" + line.substr(0, 20));
  EXPECT_EQ(add(interval(1)), 1u);
  EXPECT_EQ(read_text(path), interval_to_line(interval(1)) + "\n");
}

TEST_F(ViewIntervalTest, AFullDiskLeavesTheFileAsItWas) {
  add(interval(1));
  const std::string before = read_text(path);
  engine::set_disk_fault([](engine::DiskCall call) { return call == engine::DiskCall::kWrite ? ENOSPC : 0; });
  EXPECT_FALSE(add_interval(path, interval(2)).ok());
  ViewInterval other = interval(1);
  other.ended = "COMPLETED";
  EXPECT_FALSE(add_interval(path, other).ok());
  EXPECT_EQ(read_text(path), before);
  EXPECT_EQ(add(interval(1)), 1u) << "what is there needs no room";
}

TEST_F(ViewIntervalTest, DamagedLinesAreReportedAndNeverThrow) {
  const std::string good = interval_to_line(interval(2));
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(good);
    json[key] = value;
    const Result<ViewInterval> read = interval_from_line(json.dump());
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(with("lineage", -1), "field lineage is not a whole number");
  EXPECT_EQ(with("lineage", 1ULL << 32), "field lineage is not a whole number of its size");
  EXPECT_EQ(with("from", {{"lineage", 1}}), "field view is not there");
  EXPECT_EQ(with("members", {"NODE \x1b[2J"}), "field members is not a list of names");
  EXPECT_EQ(with("builds", {{"NODE \x1b[2J", "x"}}), "field builds is not an object of builds");
  EXPECT_EQ(with("weights", {70000}), "field weights is not a list of weights");
  EXPECT_FALSE(interval_from_line("").ok());
  EXPECT_FALSE(interval_from_line("[]").ok());
  EXPECT_FALSE(interval_from_line(std::string(100'000, '[')).ok());
  write_text(path, good + "\nodd\n" + interval_to_line(interval(3)) + "\n");
  EXPECT_EQ(lineages(), "2.1 3.1 ");
  for (const std::uint64_t seed : seeds(2000)) {
    TG_SEED(seed);
    std::mt19937_64 random(seed);
    std::string damaged = good;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
    const Result<ViewInterval> read = interval_from_line(damaged);
    if (!read) {
      EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
    }
  }
}

}  // namespace
}  // namespace tg::daemon
