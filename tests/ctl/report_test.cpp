#include <gtest/gtest.h>

#include <regex>

#include "ctl/report/chart.h"
#include "ctl/report/data_page.h"
#include "ctl/report/markup.h"
#include "ctl/report/misclassifications.h"
#include "ctl/report/page.h"
#include "ctl/report/report_data.h"

namespace tg::ctl {
namespace {

TEST(Markup, EscapesAnyText) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escaped("\x1b[2J"), "\\u001b[2J");
  EXPECT_EQ(element("td", "<script>", "x"), "<td class=\"x\">&lt;script&gt;</td>");
  EXPECT_EQ(base64(""), "");  // RFC 4648, part 10
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Series, KeepsFewPointsOfManySteps) {
  Series series;
  constexpr std::uint64_t kSteps = 100'000;
  double sum = 0;
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    series.add(step, static_cast<double>(step % 10));
    sum += static_cast<double>(step % 10);
  }
  EXPECT_LE(series.points().size(), Series::kMaxPoints);
  EXPECT_GE(series.points().size(), Series::kMaxPoints / 2);
  std::uint64_t count = 0;
  double of_points = 0, last = 0;
  for (const Series::Point& point : series.points()) {
    count += point.count;
    of_points += point.mean * static_cast<double>(point.count);
    EXPECT_EQ(point.min, 0);
    EXPECT_EQ(point.max, 9);
    EXPECT_GT(point.step, last);
    last = point.step;
  }
  EXPECT_EQ(count, kSteps);
  EXPECT_NEAR(of_points, sum, 1e-6 * sum);
  EXPECT_EQ(last, kSteps);
  series.add(kSteps + 1, std::nan(""));
  EXPECT_EQ(series.last(), 0);
}

TEST(Chart, DrawsAnyValues) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {1}, {0, 0, 0}, {-1, 1}, {1e-30, 1e30}, {5, 5}, {0.999, 1}}) {
    Series series;
    for (std::size_t i = 0; i < values.size(); ++i) series.add(i + 1, values[i]);
    for (const bool logarithmic : {false, true}) {
      const std::string svg = draw({"x", {&series}, {}, {1}, true, logarithmic});
      EXPECT_LT(svg.size(), 20'000u);
      EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    }
  }
}

constexpr const char* kHostile = "<script>alert(1)</script>";

// A report with hostile text in all fields that others fill.
ReportData hostile(std::size_t members, std::uint64_t steps) {
  ReportData data;
  schema::RunStatus& run = data.run;
  run.id = run.reason = run.model = run.data = run.exchange = run.coding = run.gradients = kHostile;
  run.data_read = kHostile;
  run.data_warnings = std::string(kHostile) + "\n";
  run.settings = std::string(kHostile) + " = " + kHostile + "\n";
  run.step = run.steps = steps;
  run.evaluated = true;
  run.code_bits_per_parameter = 1;
  for (std::size_t i = 0; i < members; ++i) run.members.push_back({.node = kHostile});
  run.departed.push_back({kHostile, 0, 7, kHostile});
  data.node = kHostile;
  data.record = {{"build", kHostile},
                 {"spec", {{kHostile, kHostile}}},
                 {"own", {{"engine_build", kHostile}, {"device", kHostile}}},
                 {"builds", {{kHostile, kHostile}}},
                 {"hashes", {{kHostile, kHostile}}}};
  data.views = {{{"members", {kHostile}}, {"ended", kHostile}}, {{"members", 3}, {"from", "x"}, {"view", kHostile}}};
  for (std::uint64_t step = 1; step <= steps; ++step) {
    MetricLine line{step, 0, {}};
    for (const char* name : {"loss", "learning_rate", "zeros", "sent_bits_per_parameter", "code_bits_per_parameter",
                             "samples_per_second", "accuracy", "evaluation_loss", "seconds", "data_wait_seconds"})
      line.metrics.push_back({name, "", 1.0 / static_cast<double>(step)});
    for (std::size_t i = 1; i < members; ++i)
      line.metrics.push_back({"wait_seconds/" + std::string(kHostile) + std::to_string(i), "", 1e-9});
    add_line(line, data.curves);
  }
  return data;
}

TEST(Page, RunsNoScriptFromOthers) {
  const std::string page = report_page(hostile(3, 20));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("content=\"default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find(" style="), std::string::npos) << "the policy would drop it";
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

TEST(Page, IsReloadedWhileTheRunIsActive) {
  ReportData data = hostile(1, 1);
  EXPECT_EQ(report_page(data).find("http-equiv=\"refresh\""), std::string::npos);
  data.refresh_seconds = 10;
  EXPECT_NE(report_page(data).find("<meta http-equiv=\"refresh\" content=\"10\">"), std::string::npos);
}

TEST(Page, StaysSmall) {
  const std::string page = report_page(hostile(50, 100'000));
  RecordProperty("bytes", static_cast<int>(page.size()));
  EXPECT_LT(page.size(), 200'000u);
}

schema::StartReply two_pictures() {
  schema::StartReply data;
  data.data_read = "2 classes & more";
  data.data_warnings = "one <b>\n";
  data.pictures.push_back({"cat", 1, 2, 3, std::string(6, '\x7f')});
  data.pictures.push_back({kHostile, 3, 2, 3, std::string(18, '\x7f')});
  return data;
}

TEST(DataPage, HasThePicturesInItself) {
  const schema::StartReply data = two_pictures();
  EXPECT_EQ(data_text(data), "2 classes & more\nwarning: one <b>\n");
  const Result<std::string> page = data_page("own.job", data);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(std::count(page->begin(), page->end(), '\n') > 0, true);
  EXPECT_NE(page->find("<li class=\"bad\">one &lt;b&gt;</li>"), std::string::npos);
  EXPECT_NE(page->find("src=\"data:image/png;base64,iVBORw0KGgo"), std::string::npos);
  EXPECT_EQ(page->find("<script"), std::string::npos);
}

TEST(DataPage, RefusesAPictureOfAnotherSize) {
  schema::StartReply data = two_pictures();
  data.pictures[1].pixels.pop_back();
  EXPECT_EQ(data_page("own.job", data).error().kind, ErrorKind::kCorrupt);
  data.pictures = {{"x", 2, 1, 1, "ab"}};
  EXPECT_FALSE(data_page("own.job", data).ok());
}

// A reply with one misclassified sample.
schema::Misclassifications mistakes_of(std::size_t classes, const std::string& name) {
  schema::Misclassifications misclassifications;
  misclassifications.run_id = "first";
  misclassifications.node = "node-a";
  misclassifications.step = 20;
  misclassifications.samples = 10 * classes;
  misclassifications.correct = misclassifications.samples - 1;
  misclassifications.class_count = classes;
  misclassifications.classes.assign(classes, name);
  misclassifications.counts.resize(classes * classes);
  for (std::size_t c = 0; c < classes; ++c) misclassifications.counts[c * classes + c] = 10;
  misclassifications.counts[0] = 9;
  misclassifications.counts[1] = 1;
  misclassifications.confusions = {{name, name, 1, 10}};
  misclassifications.worst = {{{name, 1, 2, 3, std::string(6, '\x7f')}, name, 0.981}};
  return misclassifications;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Misclassifications, AreAMatrixPairsAndPictures) {
  for (const std::size_t classes : {2u, 10u, 21u, 100u}) {
    const Result<std::string> part = misclassification_section(mistakes_of(classes, "a & b"), {});
    ASSERT_TRUE(part.ok()) << part.error().message;
    EXPECT_EQ(count_of(*part, "<rect class=\"hit\""), classes);
    EXPECT_EQ(count_of(*part, "<rect class=\"miss\""), 1u);
    EXPECT_NE(part->find(">90.0 %<"), std::string::npos) << "recall";
    EXPECT_NE(part->find("<li>a &amp; b classified as a &amp; b: 1 of 10 (10.0 %)</li>"), std::string::npos);
    EXPECT_NE(part->find("<span>predicted a &amp; b (98 %), actual a &amp; b</span>"), std::string::npos);
    EXPECT_EQ(part->find(" style="), std::string::npos) << "the policy would drop it";
  }
}

TEST(Misclassifications, RunNoScriptFromOthers) {
  ReportData data = hostile(1, 1);
  EXPECT_EQ(report_page(data).find("Confusion matrix"), std::string::npos) << "it was not requested";
  const Result<std::string> part = misclassification_section(mistakes_of(3, kHostile), data.run);
  ASSERT_TRUE(part.ok());
  data.misclassifications = *part;
  const std::string page = report_page(data);
  EXPECT_NE(page.find("Confusion matrix"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(Misclassifications, ReportADifferenceFromTheRunsEvaluation) {
  schema::RunStatus run;
  run.evaluated = true;
  run.evaluation_step = 20;
  run.evaluation_accuracy = 0.95;
  const schema::Misclassifications misclassifications = mistakes_of(2, "x");
  EXPECT_EQ(misclassification_section(misclassifications, run)->find("own evaluation"), std::string::npos);
  run.evaluation_accuracy = 0.9;
  EXPECT_NE(misclassification_section(misclassifications, run)->find("The run's own evaluation had 90.00 %"),
            std::string::npos);
  run.evaluation_step = 19;
  EXPECT_EQ(misclassification_section(misclassifications, run)->find("own evaluation"), std::string::npos)
      << "the evaluation of another step";
}

TEST(Misclassifications, AreLessWithoutPicturesOrWithManyClasses) {
  schema::Misclassifications misclassifications = mistakes_of(2, "x");
  misclassifications.worst.clear();
  EXPECT_NE(misclassification_section(misclassifications, {})->find("not pictures"), std::string::npos);
  misclassifications.correct = misclassifications.samples;
  EXPECT_NE(misclassification_section(misclassifications, {})->find("all samples are correct"), std::string::npos);
  misclassifications.class_count = 1000;
  misclassifications.classes.clear();
  EXPECT_EQ(misclassification_section(misclassifications, {}).error().kind, ErrorKind::kCorrupt)
      << "counts of no classes";
  misclassifications.counts.clear();
  EXPECT_NE(misclassification_section(misclassifications, {})->find("1000 classes are too many"), std::string::npos);
}

// View 1 was PAUSED with step 752 committed and not known to be confirmed; nothing was done in view 2.
TEST(Page, WhoTrainedWhichStepsHasNoHoles) {
  const char* const record =
      R"({"id": "first", "state": "RUNNING", "lineage": 2, "view": 3, "members": ["node-a"],
          "from": {"lineage": 2, "view": 2, "step": 752}, "own": {"node": "node-a"}})";
  const char* const first =
      R"({"lineage": 1, "view": 1, "from": {"lineage": 0, "view": 1, "step": 0}, "to_step": 751})";
  const char* const second =
      R"({"lineage": 2, "view": 2, "from": {"lineage": 1, "view": 1, "step": 752}, "to_step": 752})";
  ReportData data = report_data(record, std::string(first) + "\n" + second + "\n").value();
  data.run.step = 760;
  const std::string page = report_page(data);
  for (const char* const row :
       {"<td>1</td><td>1</td><td>1</td><td>752</td>", "<td>2</td><td>2</td><td>-</td><td>-</td>",
        "<td>2</td><td>3</td><td>753</td><td>760</td><td>node-a</td><td>RUNNING</td>"})
    EXPECT_NE(page.find(row), std::string::npos) << row << " in " << page.substr(page.find("<h2>Views"), 900);
}

TEST(ReportData, RefusesADamagedRecord) {
  for (const char* text : {"", "[]", "{\"step\": \"x\"}", "nonsense"}) EXPECT_FALSE(report_data(text, "").ok()) << text;
  const Result<ReportData> data = report_data(
      R"({"id": "first", "state": "COMPLETED", "members": ["node-a", "node-b", 3], "own": {"node": "node-a"},
          "spec": {"seed": "3", "steps": "1000"}})",
      "{\"view\": 1}\n{\"view\": 2}\n{\"torn");
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->run.members.size(), 2u);
  EXPECT_EQ(data->run.settings, "seed = 3\n");
  EXPECT_EQ(data->views.size(), 2u);
}

}  // namespace
}  // namespace tg::ctl
