#include "daemon/store/retention.h"

#include <gtest/gtest.h>

#include "schema/limits.h"

namespace tg::daemon {
namespace {

EndedRun trained(const std::string& id, std::int64_t ended_ms, bool fetched = false) {
  return {id, ended_ms, 100, true, false, true, fetched};
}
EndedRun failed(const std::string& id, std::int64_t ended_ms, bool has_model) {
  return {id, ended_ms, 100, true, true, has_model, false};
}

std::string ids(const std::vector<Deletion>& deletions) {
  std::string text;
  for (const Deletion& deletion : deletions) text += deletion.id + (deletion.unfetched ? "! " : " ");
  return text;
}

TEST(Retention, TheLeastValuableRunsAreDeletedFirst) {
  std::vector<EndedRun> runs = {trained("old", 1),          trained("fetched", 5, true), failed("empty", 6, false),
                                failed("partial", 4, true), trained("older", 0),         failed("newest", 9, false)};
  const auto left = [&](std::uint64_t keep) { return ids(runs_to_delete(runs, {keep, 0, 0}, 10)); };
  EXPECT_EQ(left(6), "");
  EXPECT_EQ(left(5), "empty ");
  EXPECT_EQ(left(4), "empty fetched ");
  EXPECT_EQ(left(3), "empty fetched partial! ");
  EXPECT_EQ(left(2), "empty fetched partial! older! ");
  EXPECT_EQ(left(1), "empty fetched partial! older! old! ") << "the newest stays, whatever it is";
}

TEST(Retention, TheLimitInBytesUsesTheSameOrder) {
  const std::vector<EndedRun> runs = {trained("old", 1), trained("fetched", 5, true), trained("new", 6)};
  EXPECT_EQ(ids(runs_to_delete(runs, {200, 0, 300}, 10)), "");
  EXPECT_EQ(ids(runs_to_delete(runs, {200, 0, 299}, 10)), "fetched ");
  EXPECT_EQ(ids(runs_to_delete(runs, {200, 0, 1}, 10)), "fetched old! ");
}

TEST(Retention, AgeAloneDeletesNoUnfetchedModel) {
  const std::vector<EndedRun> runs = {trained("old", 1), trained("fetched", 2, true), failed("empty", 3, false),
                                      trained("young", 95, true), trained("new", 99)};
  EXPECT_EQ(ids(runs_to_delete(runs, {200, 10, 0}, 100)), "fetched empty ");
  EXPECT_EQ(ids(runs_to_delete(runs, {200, 0, 0}, 1'000'000)), "");
}

TEST(Retention, StartsThatNeverBeganCountSeparately) {
  std::vector<EndedRun> runs = {trained("old", 1)};
  for (std::size_t i = 0; i < schema::kMaxUnstartedKept + 2; ++i)
    runs.push_back(
        {"start-" + std::to_string(100 + i), static_cast<std::int64_t>(10 + i), 1, false, true, false, false});
  EXPECT_EQ(ids(runs_to_delete(runs, {1, 1, 1}, 1'000'000)), "start-100 start-101 ");
}

}  // namespace
}  // namespace tg::daemon
