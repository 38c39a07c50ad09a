// The manual pages say all that the tables know.
#include <gtest/gtest.h>

#include <sstream>

#include "ctl/command_line/command_table.h"
#include "ctl/exit_code.h"
#include "schema/options/job.h"
#include "schema/options/manual.h"
#include "schema/options/node_config.h"

namespace tg::ctl {
namespace {

// As the page has it.
std::string dashed(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '-' ? "\\-" : std::string(1, c);
  return escaped;
}

void expect_item(const std::string& page, const std::string& tag) {
  EXPECT_NE(page.find(".TP\n.B " + dashed(tag) + "\n"), std::string::npos) << tag;
}

TEST(Manual, OfTgctlHasEveryVerbOptionAndExitCode) {
  const std::string page = manual_page("tgctl");
  for (const VerbRow& verb : verb_rows()) {
    EXPECT_NE(page.find("\n.SS " + dashed(verb.name)), std::string::npos) << verb.name;
    for (const char* name : verb.options) EXPECT_NE(page.find(dashed("--" + std::string(name))), std::string::npos);
  }
  for (const ExitMeaning& row : kExitMeanings) expect_item(page, std::to_string(row.code));
}

TEST(Manual, OfFilesHasEveryKey) {
  const std::string node = manual_page("tgd.conf"), job = manual_page("tgd.job");
  for (const schema::Option<schema::NodeConfig>& row : schema::node_options()) expect_item(node, row.name);
  for (const schema::Option<schema::JobSpec>& row : schema::job_options()) expect_item(job, row.name);
}

TEST(Manual, OfTgdHasItsOptions) {
  const std::string page = manual_page("tgd");
  for (const schema::ProgramOption& row : schema::program_options())
    EXPECT_NE(page.find(dashed("--" + std::string(row.name))), std::string::npos) << row.name;
}

TEST(Manual, TextIsNoCommand) {
  schema::Manual page("x", 1, "y");
  page.paragraph(".SH is no heading, \\fB no bold face, and 'it' no quote");
  EXPECT_NE(page.text().find("\n\\&.SH is no heading, \\efB no bold face, and \\(aqit\\(aq no quote\n"),
            std::string::npos)
      << page.text();
}

TEST(Manual, LinesAreShort) {
  for (const std::string& name : manual_names()) {
    std::istringstream lines(manual_page(name));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << name << ": " << line;
  }
}

}  // namespace
}  // namespace tg::ctl
