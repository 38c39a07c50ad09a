// The live view of `status --watch`: its screen at many sizes, and its keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ctl/watch/layout.h"
#include "ctl/watch/plot.h"
#include "ctl/watch/screen.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using schema::NodeState;
using schema::RunState;

constexpr std::int64_t kWatchedMs = 1'700'000'100'000;

schema::RunStatus watched_run(const std::string& id, RunState state) {
  schema::RunStatus run;
  run.id = id;
  run.state = state;
  run.started_ms = run.since_ms = kWatchedMs - 60'000;
  run.model = "lenet";
  run.step = 120;
  run.steps = 1000;
  run.loss = 0.5;
  run.evaluated = true;
  run.evaluation_step = 100;
  run.evaluation_accuracy = 0.971;
  run.samples_per_second = 1234;
  run.sent_bits_per_parameter = 1.6;
  run.global_batch = 64;
  run.data_read = "60000 pictures";
  run.view = 2;
  run.view_step = 90;
  run.departed = {{"node-c", kWatchedMs - 5000, 90, "no sign of life"}};
  for (const char* const node : {"node-a", "node-b"}) {
    run.members.push_back({node, state, 120, 0, 0, 0.25, schema::Phase::kReduce});
    run.members.back().samples = 32;
  }
  run.members[1].wait_share = 0.75;
  return run;
}

Facts watched_facts() {
  Facts facts;
  facts.now_ms = kWatchedMs;
  schema::MeshStatus mesh{"node-a",
                          "tgd",
                          false,
                          {{"node-a", "127.0.0.1:7701", NodeState::kUp, ""},
                           {"node-b", "127.0.0.1:7711", NodeState::kUp, ""},
                           {"node-c", "127.0.0.1:7721", NodeState::kUnreachable, "nothing answers"}},
                          {watched_run("ended", RunState::kCompleted), watched_run("lenet-1", RunState::kRunning)}};
  for (std::uint64_t step = 1; step <= 120; ++step) {
    mesh.runs[1].step = step;
    mesh.runs[1].loss = 2.3 / static_cast<double>(step);
    facts.update(mesh);
    std::ranges::stable_partition(mesh.runs, [](const auto& run) { return run.id == "ended"; });
  }
  return facts;
}

std::string text_of(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) {
    for (const Piece& piece : line) text += piece.text;
    text += '\n';
  }
  return text;
}

constexpr std::pair<std::size_t, std::size_t> kSizes[] = {{40, 12}, {80, 24}, {120, 40}, {200, 60}};

// Checks all pages at many sizes, with and without UTF-8; returns the text at sizes that terminals have.
void for_each_screen(const Facts& facts, const std::function<void(const std::string&, const View&)>& look) {
  std::vector<std::pair<std::size_t, std::size_t>> sizes(std::begin(kSizes), std::end(kSizes));
  for (std::size_t small = 0; small < 30; ++small)
    sizes.insert(sizes.end(), {{small, small}, {small, 30}, {90, small}});
  for (const auto& [columns, lines] : sizes)
    for (const bool utf8 : {true, false})
      for (const Page page : {Page::kMesh, Page::kLog, Page::kHelp}) {
        View view{columns, lines, utf8, page};
        const std::vector<ScreenLine> shown = screen(facts, view);
        SCOPED_TRACE(std::to_string(columns) + " x " + std::to_string(lines) + (utf8 ? " UTF-8" : " ASCII"));
        EXPECT_LE(shown.size(), lines);
        for (const ScreenLine& line : shown) EXPECT_LE(width_of(line), columns);
        const std::string text = text_of(shown);
        const bool ascii = std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 127); });
        EXPECT_TRUE(utf8 || ascii) << text;
        const bool usual = std::ranges::count(kSizes, std::pair(columns, lines)) > 0;
        if (usual && page == Page::kMesh) look(text, view);
      }
}

TEST(Watch, ShowsTheEssentialsAtEverySize) {
  for_each_screen(watched_facts(), [](const std::string& text, const View& view) {
    for (const char* const fact : {"node-a: 2 of 3 nodes up", "node-c", "unreachable", "lenet-1", "RUNNING", "120/1000",
                                   "VIEW", "1234 samples/s", "1.60 of float32's 32", "loss 0.0192", "accuracy 97.10 %"})
      EXPECT_NE(text.find(fact), std::string::npos) << fact << "\n" << text;
    EXPECT_NE(text.find(view.utf8 ? "\xe2\xa0" : "*"), std::string::npos) << text;
    if (view.lines < 24) return;
    for (const char* const fact : {"node-b", "75 %", "617", "reduce", "node-c left at step 90: no sign of life",
                                   "data: 60000 pictures", "29m20s", "steps 1 to 120"})
      EXPECT_NE(text.find(fact), std::string::npos) << fact << "\n" << text;
  });
}

TEST(Watch, AnEmptyMeshSaysHowToBegin) {
  Facts facts;
  for_each_screen(facts, [](const std::string& text, const View&) {
    EXPECT_NE(text.find("no runs yet"), std::string::npos) << text;
  });
  facts.update(schema::MeshStatus{"node-a", "", true, {{"node-a", "", NodeState::kUp, ""}}, {}});
  for_each_screen(facts, [](const std::string& text, const View&) {
    EXPECT_NE(text.find("insecure"), std::string::npos) << text;
    EXPECT_NE(text.find("node-a"), std::string::npos) << text;
  });
}

TEST(Watch, NoTextOfOthersControlsTheTerminalOrBreaksColumns) {
  const std::string evil =
      "\x1b[2J\x9b\xff\xe2\x80\xae\ta\n\xe6\xbc\xa2\xcc\x81\xf0\x9f\x98\x80 \xc3\xa4" + std::string(300, 'x');
  Facts facts = watched_facts();
  schema::MeshStatus mesh = facts.mesh;
  for (std::size_t i = 0; i < 100; ++i) mesh.nodes.push_back({evil, evil, NodeState::kNoLink, evil});
  for (std::size_t i = 0; i < 100; ++i) {
    schema::RunStatus run = watched_run(evil + std::to_string(i), RunState::kPaused);
    run.reason = run.model = run.data_read = run.exchange = evil;
    run.departed[0].node = run.departed[0].why = run.members[0].node = evil;
    run.loss = run.samples_per_second = run.evaluation_accuracy = std::numeric_limits<double>::max();
    run.sent_bits_per_parameter = std::nan("");
    mesh.runs.push_back(run);
  }
  facts.update(mesh);
  facts.error = facts.log.node = facts.log.problem = facts.log.text = evil;
  for (const std::string& chosen : {std::string(), mesh.runs.back().id}) {
    View view;
    view.run = chosen;
    const std::string text = text_of(screen(facts, view));
    for (const char* const bad : {"\x1b", "\xff", "\t", "\xe6\xbc\xa2", "\xcc\x81", "\xf0\x9f\x98\x80", "\xe2\x80\xae"})
      EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
  for_each_screen(facts, [](const std::string&, const View&) {});
  EXPECT_EQ(in_columns(evil.substr(0, 24), true), "\\u001b[2J\\x9b\\xff\\u202e a ??? \xc3\xa4");
  EXPECT_EQ(in_columns("\xc3\xa4 \xe2\xa3\xbf", false), "? ?");
}

TEST(Watch, KeysChooseARunOpenItsLogAndEnd) {
  Facts facts = watched_facts();
  View view;
  on_key('j', facts, view);
  EXPECT_EQ(view.run, "ended");
  on_key(kDownKey, facts, view);
  EXPECT_EQ(view.run, "ended") << "the last one";
  on_key(kUpKey, facts, view);
  EXPECT_EQ(view.run, "lenet-1");
  on_key('l', facts, view);
  EXPECT_EQ(view.page, Page::kLog);
  for (int i = 0; i < 100; ++i) facts.log.text += "line " + std::to_string(i) + "\n";
  on_key(kUpKey, facts, view);
  EXPECT_EQ(text_of(screen(facts, view)).find("line 99"), std::string::npos);
  on_key(kHomeKey, facts, view);
  on_key(kPageUpKey, facts, view);
  EXPECT_NE(text_of(screen(facts, view)).find("line 0\n"), std::string::npos);
  on_key('G', facts, view);
  EXPECT_NE(text_of(screen(facts, view)).find("line 99\n"), std::string::npos);
  on_key('q', facts, view);
  EXPECT_EQ(view.page, Page::kMesh);
  EXPECT_FALSE(view.quit);
  on_key('?', facts, view);
  EXPECT_EQ(view.page, Page::kHelp);
  on_key(kEscapeKey, facts, view);
  EXPECT_EQ(view.page, Page::kMesh);
  on_key('q', facts, view);
  EXPECT_TRUE(view.quit);
  View empty;
  on_key('l', Facts{}, empty);
  on_key('j', Facts{}, empty);
  EXPECT_EQ(empty.page, Page::kMesh);
}

TEST(Watch, ReportsThatTheNodeDoesNotReply) {
  Facts facts = watched_facts();
  facts.now_ms += 12'000;
  facts.error = "no tgd answers at 127.0.0.1:7701";
  for_each_screen(facts, [](const std::string& text, const View&) {
    EXPECT_NE(text.find("no reply for 12s, retrying"), std::string::npos) << text;
    EXPECT_NE(text.find("lenet-1"), std::string::npos) << "the last known state\n" << text;
  });
}

TEST(Watch, TheHistoryOfAResumedRunRestarts) {
  Facts facts;
  schema::MeshStatus mesh{"node-a", "", false, {}, {watched_run("one", RunState::kRunning)}};
  facts.update(mesh);
  mesh.runs[0].step = 130;
  facts.update(mesh);
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 2u);
  mesh.runs[0].step = 50;
  mesh.runs[0].lineage = 2;
  facts.update(mesh);
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 1u);
  mesh.runs.clear();
  facts.update(mesh);
  EXPECT_TRUE(facts.histories.empty());
}

TEST(Facts, HaveARunsHistory) {
  Facts facts;
  schema::MeshStatus mesh;
  mesh.runs.emplace_back();
  schema::RunStatus& run = mesh.runs.front();
  run.id = "one";
  run.step = 3;
  facts.update(mesh);
  Curves curves;
  facts.add_history("one", curves);  // nothing is written yet
  EXPECT_LT(facts.histories["one"].history_tries, kMaxHistoryTries) << "it is fetched again";
  for (std::uint64_t step = 1; step <= 4; ++step) curves.loss.add(step, 1);
  facts.add_history("one", curves);
  EXPECT_EQ(facts.histories["one"].first_step, 1u);
  EXPECT_EQ(facts.histories["one"].history_tries, kMaxHistoryTries);
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 4u);
  run.step = 4;  // an answer that is older than the file
  facts.update(mesh);
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 4u);
  run.step = 6;
  facts.update(mesh);
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 5u);
  facts.add_history("one", curves);  // the file is behind what was seen
  EXPECT_EQ(facts.histories["one"].loss.points().size(), 5u);
  EXPECT_EQ(facts.histories["one"].loss.last_step(), 6u);
}

TEST(Watch, ALogIsReadFromNearItsEndAndAgainWhereItGetsShorter) {
  LogTail log;
  const std::uint64_t total = 10 * schema::kLogSliceBytes;
  EXPECT_TRUE(log.add({"r", "node-a", total, "", false}));
  EXPECT_EQ(log.offset, total - schema::kLogSliceBytes);
  EXPECT_FALSE(log.add({"r", "node-a", total, std::string(schema::kLogSliceBytes, 'x'), false}));
  for (int i = 0; i < 100; ++i) log.add({"r", "node-a", 2 * total, std::string(schema::kLogSliceBytes, 'y'), false});
  EXPECT_LE(log.text.size(), 2 * schema::kLogSliceBytes);
  EXPECT_FALSE(log.add({"r", "node-a", 0, "", false}));
  EXPECT_TRUE(log.text.empty());
  EXPECT_EQ(log.offset, 0u);
}

TEST(Plot, DrawsALineInBrailleOrAsterisks) {
  Series series;
  for (std::uint64_t step = 1; step <= 4; ++step) series.add(step, static_cast<double>(step));
  EXPECT_EQ(plot(series, {12, 4, false}),
            (std::vector<std::string>{" 4.0000    *", "          * ", "         *  ", " 1.0000 *   "}));
  EXPECT_EQ(plot(series, {10, 1, true}), (std::vector<std::string>{" 4.0000 \xe2\xa1\xa0\xe2\xa0\x8a"}));
  EXPECT_EQ(plot(Series{}, {12, 2, true}), (std::vector<std::string>{"", ""}));
}

TEST(Plot, DrawsAnyValues) {
  const double max = std::numeric_limits<double>::max();
  for (const std::vector<double>& values :
       {std::vector<double>{1}, {0, 0, 0}, {-1, 1}, {-max, max}, {max, max, max}, {5, 5}}) {
    Series series;
    for (std::size_t i = 0; i < 200; ++i) series.add(i / 2 + 1, values[i % values.size()]);
    for (const bool utf8 : {true, false})
      for (std::size_t columns = 0; columns < 40; ++columns)
        for (const std::string& line : plot(series, {columns, columns / 3, utf8}))
          EXPECT_LE(schema::text_width(line), columns);
  }
}

}  // namespace
}  // namespace tg::ctl
