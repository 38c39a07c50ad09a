#include "ctl/format/comparison.h"

#include <gtest/gtest.h>

#include "ctl/command_line/command_line.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"

namespace tg::ctl {
namespace {

schema::RunStatus run_of(const std::string& id, const std::string& settings, double accuracy) {
  schema::RunStatus run;
  run.id = id;
  run.state = schema::RunState::kCompleted;
  run.step = run.steps = 200;
  run.settings = settings;
  run.evaluated = true;
  run.evaluation_accuracy = accuracy;
  return run;
}

const std::vector<schema::RunStatus> kRuns = {run_of("one", "model = mlp\nlearning-rate = 0.1\n", 0.9),
                                              run_of("two", "model = mlp\nseed = 3\nof-tomorrow = x\n", 0.95)};

TEST(Comparison, HasTheKeysAndResultsThatDiffer) {
  EXPECT_EQ(format_comparison(kRuns, kAnyColumns),
            "RUN            one      two\n"
            "learning-rate  0.1      0.01\n"
            "seed           1        3\n"
            "of-tomorrow    none     x\n"
            "accuracy       90.00 %  95.00 %\n");
  EXPECT_EQ(format_comparison({kRuns[0], kRuns[0]}, kColumns), "no differences\n");
}

TEST(Comparison, AListShowsTheDifferencesBetweenItsRuns) {
  EXPECT_EQ(differing_settings(kRuns), (std::vector<std::string>{"learning-rate=0.1 seed=1 of-tomorrow=none",
                                                                 "learning-rate=0.01 seed=3 of-tomorrow=x"}));
  EXPECT_EQ(differing_settings({kRuns[0]}), std::vector<std::string>{""});
  const std::string wide = format_runs(kRuns, 0, 200), narrow = format_runs(kRuns, 0, kColumns);
  EXPECT_NE(wide.find("ACCURACY  DIFFERS"), std::string::npos) << wide;
  EXPECT_EQ(narrow.find("DIFFERS"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("\n  learning-rate=0.01 seed=3"), std::string::npos) << narrow;
}

TEST(Comparison, TakesTwoRunsOrMore) {
  const auto parsed = [](std::vector<const char*> words) {
    return parse_command(static_cast<int>(words.size()), words.data(), nullptr);
  };
  const auto three = parsed({"tgctl", "compare", "a", "b", "@last"});
  ASSERT_TRUE(three.ok()) << three.error().message;
  EXPECT_EQ(three->more_operands, (std::vector<std::string>{"b", "@last"}));
  EXPECT_NE(parsed({"tgctl", "compare", "a"}).error().message.find("needs two runs or more"), std::string::npos);
  EXPECT_NE(parsed({"tgctl", "compare", "a", "../b"}).error().message.find("no run is named"), std::string::npos);
}

}  // namespace
}  // namespace tg::ctl
