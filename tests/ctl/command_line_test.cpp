#include "ctl/command_line/command_line.h"

#include <gtest/gtest.h>

#include <sstream>

#include "ctl/command_line/command_table.h"
#include "schema/options/reference.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

Result<Command> parse(std::vector<const char*> arguments, const char* address = nullptr) {
  arguments.insert(arguments.begin(), "tgctl");
  return parse_command(static_cast<int>(arguments.size()), arguments.data(), address);
}

void expect_error(std::vector<const char*> arguments, const std::string& part, ErrorKind kind = ErrorKind::kUsage) {
  const Result<Command> command = parse(std::move(arguments));
  ASSERT_FALSE(command.ok()) << part;
  EXPECT_EQ(command.error().kind, kind);
  EXPECT_NE(command.error().message.find(part), std::string::npos) << "got: " << command.error().message;
}

TEST(CommandLine, StartTakesItsOptionsAnywhere) {
  const auto command = parse({"start", "--set", "steps=5", "a.job", "-d", "--set=seed=2", "--id", "x", "--dry-run"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->verb, Verb::kStart);
  EXPECT_EQ(command->operand, "a.job");
  EXPECT_EQ(command->settings, (std::vector<std::string>{"steps=5", "seed=2"}));
  EXPECT_EQ(command->id, "x");
  EXPECT_TRUE(command->detach && command->dry_run);
}

TEST(CommandLine, OtherVerbs) {
  EXPECT_TRUE(parse({"status", "--json", "--watch"})->json);
  EXPECT_EQ(parse({"status", "first"})->operand, "first");
  EXPECT_EQ(parse({"stop", "first"})->verb, Verb::kStop);
  const auto fetch = parse({"fetch", "first", "-o", "dir", "--partial", "--force"});
  EXPECT_TRUE(fetch->partial && fetch->force && fetch->output == "dir");
  const auto logs = parse({"logs", "first", "-f", "--node", "node-b"});
  EXPECT_TRUE(logs->follow && logs->node == "node-b");
  const auto wait = parse({"wait", "first", "--for", "step=7", "--timeout", "2m"});
  EXPECT_EQ(wait->until, "step=7");
  EXPECT_EQ(wait->timeout_ms, 120'000u);
  EXPECT_EQ(parse({"wait", "first"})->timeout_ms, std::nullopt);
  const auto plan = parse({"plan", "a.job", "--nodes", "8", "--link", "1Gbps", "--compute", "80ms", "--set", "seed=2"});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->verb == Verb::kPlan && plan->nodes == 8 && plan->link_mbps == 1000 && plan->compute_ms == 80);
  EXPECT_EQ(plan->settings.size(), 1u);
  EXPECT_EQ(parse({"list"})->verb, Verb::kList);
  EXPECT_EQ(parse({"version"})->verb, Verb::kVersion);
  EXPECT_TRUE(parse({"--version"})->version);
}

TEST(CommandLine, Resume) {
  const auto newest = parse({"resume", "first", "-d"});
  ASSERT_TRUE(newest.ok()) << newest.error().message;
  EXPECT_TRUE(newest->verb == Verb::kResume && newest->operand == "first" && newest->detach);
  EXPECT_TRUE(!newest->from_step && !newest->any_build);
  const auto earlier = parse({"resume", "@last", "--from", "600", "--any-build", "--set", "steps=2000"});
  ASSERT_TRUE(earlier.ok()) << earlier.error().message;
  EXPECT_TRUE(earlier->from_step == 600u && earlier->any_build && earlier->settings.size() == 1);
  EXPECT_EQ(parse({"resume", "first", "--from", "0"})->from_step, 0u);
  expect_error({"resume"}, "resume needs a RUN; for example: tgctl resume first");
  expect_error({"resume", "first", "--from", "newest"}, "--from: \"newest\" is not a step; tgctl status RUN shows");
  expect_error({"resume", "first", "--id", "second"}, "unknown option");
}

TEST(CommandLine, AddressIsFlagThenEnvironmentThenDefault) {
  EXPECT_EQ(parse({"list"})->address, "");  // this machine's
  EXPECT_EQ(parse({"list"}, "h:1")->address, "h:1");
  EXPECT_EQ(parse({"list"}, "")->address, "");
  EXPECT_EQ(parse({"list", "--address", "h:2"}, "h:1")->address, "h:2");
  EXPECT_EQ(parse({"--address", "h:3", "list"}, "h:1")->address, "h:3");
  EXPECT_EQ(parse({"--address=h:4", "list"})->address, "h:4");
}

TEST(CommandLine, MisspellingsGetTheNearest) {
  expect_error({"statsu"}, "did you mean tgctl status?");
  expect_error({"strat", "x"}, "did you mean tgctl start?");
  expect_error({"frobnicate"}, "tgctl help");
  expect_error({"status", "--jsno"}, "did you mean --json?");
  for (const char* option : {"--steps", "--steps=5"})
    expect_error({"start", "a.job", option}, "; a key of the job is set by --set steps=VALUE");
  expect_error({"plan", "a.job", "--seed", "5"}, "is set by --set seed=VALUE");
  expect_error({"stop", "a", "--steps"}, "unknown option --steps; tgctl stop --help lists them");
  expect_error({"--adress", "h:1", "list"}, "did you mean --address?");
  expect_error({"list", "-x"}, "unknown option -x");
}

TEST(CommandLine, MissingAndExtraArgumentsAreNamed) {
  expect_error({}, "no command given");
  expect_error({"start"}, "start needs a JOB, or - for a job on stdin; for example: tgctl start ");
  expect_error({"stop"}, "stop needs a RUN");
  expect_error({"data", "show"}, "data needs a JOB");
  expect_error({"compare"}, "compare needs two runs or more");
  expect_error({"fetch", "first"}, "-o DIR");
  expect_error({"list", "first"}, "list takes no \"first\"");
  expect_error({"stop", "a", "b"}, "\"b\" is one too many");
  expect_error({"start", "a.job", "--set"}, "--set");
  expect_error({"start", "a.job", "--set", "steps", "100"}, "in one word: --set steps=VALUE");
  expect_error({"start", "--set", "steps", "100", "a.job"}, "in one word: --set steps=VALUE");
  expect_error({"fetch", "first", "-o", "-"}, "cannot write them to stdout; give a folder");
  expect_error({"plan", "a.job"}, "plan needs --nodes N");
  expect_error({"plan", "--nodes", "2"}, "plan needs a JOB");
  for (const char* nodes : {"0", "128", "-1", "two", "2.5", ""})
    expect_error({"plan", "a.job", "--nodes", nodes}, "--nodes");
  for (const char* link : {"1000", "fast", "0Gbps"})
    expect_error({"plan", "a.job", "--nodes", "2", "--link", link}, "--link");
  expect_error({"plan", "a.job", "--nodes", "2", "--compute", "80"}, "--compute");
  expect_error({"wait", "a", "--timeout", "60"}, "--timeout");
  expect_error({"start", "a.job", "--id", "a/b"}, "--id \"a/b\"");
  expect_error({"logs", "a", "--node", "B"}, "--node \"B\"");
  expect_error({"--address"}, "the required argument for option '--address' is missing");
  expect_error({"wait", "a", "--for", "x", "--for", "y"}, "option '--for' cannot be specified more than once");
  expect_error({"list", "--json=1"}, "list: option '--json' does not take any arguments");
  expect_error({"stop", "a/b"}, "no run is named \"a/b\"", ErrorKind::kNotFound);
}

TEST(CommandLine, EveryVerbHasHelpThatBeginsWithTwoExamples) {
  for (const std::string& name : verb_names()) {
    if (name == "help") continue;
    for (const auto& command : {parse({name.c_str(), "--help"}), parse({"help", name.c_str()})}) {
      ASSERT_TRUE(command.ok()) << name;
      const std::string& text = command->help;
      EXPECT_TRUE(text.starts_with("  $ tgctl ")) << text;
      EXPECT_NE(text.find("\n  $ tgctl "), std::string::npos) << text;
      EXPECT_NE(text.find("Usage: tgctl " + name), std::string::npos) << text;
    }
    EXPECT_NE(general_help().find("\n  " + name), std::string::npos) << name;
  }
  EXPECT_FALSE(parse({"--help"})->help.empty());
  EXPECT_FALSE(parse({"help"})->help.empty());
  EXPECT_EQ(parse({"help", "all"})->help, whole_help());
  EXPECT_EQ(parse({"help", "job"})->help, schema::job_reference());
  EXPECT_EQ(parse({"help", "node"})->help, schema::node_reference());
}

TEST(CommandLine, HelpFitsATerminal) {
  std::vector<std::string> pages{general_help()};
  for (const VerbRow& row : verb_rows()) pages.push_back(verb_help(row.verb));
  for (const std::string& page : pages) {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(schema::text_width(line), 80u) << line;
  }
}

}  // namespace
}  // namespace tg::ctl
