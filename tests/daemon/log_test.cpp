// The lines of a log in both forms; in JSON each line is one object, whatever a field contains.
#include "kernels/base/log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tg {
namespace {

// Writes to stderr as well.
std::string line_with(LogFormat format, std::initializer_list<LogField> fields) {
  std::string seen;
  Log log("node-a", LogLevel::kInfo, format);
  log.set_sink([&seen](std::string_view line) { seen = line; });
  log.info("tested", fields);
  return seen;
}

TEST(Log, Text) {
  const std::string line = line_with(LogFormat::kText, {{"run", "first"}, {"why", "a \"b\"\n"}, {"step", 7}});
  EXPECT_EQ(line.substr(line.find(' ')), " level=info node=node-a event=tested run=first why=\"a \\\"b\\\" \" step=7");
}

TEST(Log, JsonHasFieldsInOrderAndNumbersAsNumbers) {
  const std::string line = line_with(
      LogFormat::kJson, {{"run", "first"}, {"step", 7}, {"loss", 2.5e-7}, {"rate", NAN}, {"most", -INFINITY}});
  EXPECT_EQ(line.substr(line.find(",\"level")),
            R"(,"level":"info","node":"node-a","event":"tested","run":"first","step":7,"loss":2.5e-07,"rate":"nan",)"
            R"("most":"-inf"})");
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"].get<std::string>().size(), std::string("2017-12-04T09:00:00.000Z").size());
}

TEST(Log, JsonOfEveryText) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"", ""},
      {"a \"b\" \\ c", "a \"b\" \\ c"},
      {"two\nlines\r\t\x1b[0m\x7f", "two\nlines\r\t\x1b[0m\x7f"},
      {std::string("\0", 1), std::string("\0", 1)},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                                   // cut off
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                   // an overlong encoding
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                   // half of a surrogate pair
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};  // beyond the last code point
  for (int byte = 1; byte < 256; ++byte)
    texts.emplace_back(std::string(1, static_cast<char>(byte)),
                       byte < 0x80 ? std::string(1, static_cast<char>(byte)) : "\xef\xbf\xbd");
  for (const auto& [text, expected] : texts) {
    const std::string line = line_with(LogFormat::kJson, {{"what", text}, {"after", 1}});
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << line;
    EXPECT_EQ(json["what"], expected) << line;
    EXPECT_EQ(json["after"], 1);
  }
}

TEST(Log, TheNoteAboutLostLinesHasTheSameForm) {
  const Log log("node-a", LogLevel::kError, LogFormat::kJson);
  const auto json = nlohmann::json::parse(log.lost_note()(3));
  EXPECT_EQ(json["event"], "log-lines-lost");
  EXPECT_EQ(json["lines"], 3);
}

}  // namespace
}  // namespace tg
