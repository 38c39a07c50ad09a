// What a Tab offers, without a shell and without a node.
#include "ctl/command_line/completion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ctl/command_line/command_table.h"
#include "schema/options/job.h"
#include "schema/options/node_config.h"

namespace tg::ctl {
namespace {

using Words = std::vector<std::string>;

Words offered(const Words& words, const std::string& program = "tgctl") { return complete(program, words).words; }
Place place(const Words& words, const std::string& program = "tgctl") { return complete(program, words).place; }
bool offers(const Words& words, const std::string& word) {
  const Words all = offered(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

TEST(Completion, Verbs) {
  EXPECT_EQ(offered({"sta"}), (Words{"start", "status"}));
  EXPECT_EQ(offered({""}), verb_names());
  EXPECT_EQ(offered({"--address", "10.0.0.1:7701", "fe"}), Words{"fetch"});
  EXPECT_EQ(offered({"help", "jo"}), (Words{"join", "job"}));
  EXPECT_EQ(offered({"--ver"}), Words{"--version"});
  EXPECT_EQ(offered({"nonsense", ""}), verb_names()) << "still no verb";
}

TEST(Completion, EveryOptionOfEveryVerb) {
  for (const VerbRow& verb : verb_rows())
    for (const char* option : verb.options)
      EXPECT_TRUE(offers({verb.name, "-"}, "--" + std::string(option))) << verb.name << " " << option;
  EXPECT_EQ(offered({"start", "a.job", "--de"}), Words{"--detach"});
}

TEST(Completion, Operands) {
  EXPECT_EQ(place({"start", ""}), Place::kJob);
  EXPECT_EQ(place({"plan", "--nodes", "4", "x"}), Place::kJob);
  for (const char* verb : {"status", "stop", "resume", "fetch", "delete", "logs", "wait"})
    EXPECT_EQ(place({verb, ""}), Place::kRun) << verb;
  EXPECT_EQ(offered({"fetch", "@"}), Words{"@last"});
  EXPECT_EQ(offered({"fetch", ""}), Words{});
  EXPECT_EQ(place({"export", ""}), Place::kRunOrFolder);
  EXPECT_EQ(offered({"delete", "@"}), Words{});
  EXPECT_EQ(place({"keygen", ""}), Place::kFile);
  EXPECT_EQ(place({"stop", "run-1", ""}), Place::kNone) << "one is enough";
  EXPECT_EQ(place({"list", ""}), Place::kNone);
  EXPECT_EQ(offered({"completion", ""}), shells());
  EXPECT_EQ(offered({"man", "tgd."}), (Words{"tgd.conf", "tgd.job"}));
}

TEST(Completion, Arguments) {
  EXPECT_EQ(place({"logs", "run-1", "--node", ""}), Place::kNode);
  EXPECT_EQ(place({"logs", "run-1", "--node=no"}), Place::kNode);
  EXPECT_EQ(complete("tgctl", {"logs", "run-1", "--node=no"}).begun, "no");
  EXPECT_EQ(place({"--key", "/etc/"}), Place::kFile);
  EXPECT_EQ(place({"fetch", "run-1", "-o", ""}), Place::kFolder);
  EXPECT_EQ(offered({"wait", "run-1", "--for", "s"}), Words{"step="});
  EXPECT_EQ(offered({"wait", "run-1", "--for", "ST"}), (Words{"STARTING", "STOPPING", "STOPPED"}));
  EXPECT_EQ(offered({"keygen", "k", "--rotate", ""}), (Words{"add", "use", "drop"}));
  EXPECT_EQ(offered({"resume", "run-1", "--from", ""}), Words{});
  EXPECT_EQ(offered({"export", "run-1", "--to", ""}), (Words{"csv", "tensorboard"}));
  EXPECT_EQ(offered({"wait", "run-1", "--for", "I"}), Words{"INTERRUPTED"});
  EXPECT_EQ(place({"wait", "run-1", "--timeout", ""}), Place::kNone);
}

TEST(Completion, KeysOfAJob) {
  EXPECT_EQ(offered({"start", "a.job", "--set", "learning"}), Words{"learning-rate="});
  EXPECT_EQ(offered({"start", "a.job", "--set", ""}).size(), schema::job_options().size());
  EXPECT_EQ(offered({"start", "a.job", "--set", "optimizer=a"}), (Words{"adam", "adamw"}));
  EXPECT_EQ(place({"start", "a.job", "--set", "data-dir=/s"}), Place::kFile);
  EXPECT_EQ(offered({"start", "a.job", "--set=exchange=s"}), Words{"sharded"});
  EXPECT_EQ(offered({"start", "a.job", "--set", "no-such-key="}), Words{});
  EXPECT_TRUE(offers({"resume", "run-1", "--set", "st"}, "steps="));
  EXPECT_EQ(offered({"resume", "run-1", "--set", "se"}), Words{}) << "the seed cannot change";
  EXPECT_EQ(offered({"resume", "run-1", "--set", "trace=t"}), Words{"true"});
}

TEST(Completion, TheNodeToAskIsTheOneOfTheLine) {
  const Completion completion = complete("tgctl", {"--address", "10.0.0.1:7701", "stop", "--key=a.key", ""});
  EXPECT_EQ(completion.address, "10.0.0.1:7701");
  EXPECT_EQ(completion.key_file, "a.key");
  EXPECT_EQ(complete("tgctl", {"stop", "--address", "10.0.0.2:7701", "x"}).address, "10.0.0.2:7701");
}

TEST(Completion, OptionsOfTgd) {
  for (const schema::Option<schema::NodeConfig>& row : schema::node_options()) {
    const Words all = offered({"--"}, "tgd");
    EXPECT_NE(std::find(all.begin(), all.end(), "--" + row.name), all.end()) << row.name;
  }
  EXPECT_EQ(offered({"--check"}, "tgd"), Words{"--check-config"});
  EXPECT_EQ(place({"--config", ""}, "tgd"), Place::kFile);
  EXPECT_EQ(place({"-c", ""}, "tgd"), Place::kFile);
  EXPECT_EQ(place({"--state-dir=/v"}, "tgd"), Place::kFile);
  EXPECT_EQ(offered({"--kernels", "avx"}, "tgd"), (Words{"avx512", "avx2"}));
  EXPECT_EQ(offered({"--kernels=s"}, "tgd"), Words{"scalar"});
  EXPECT_EQ(offered({""}, "other"), Words{});
  EXPECT_EQ(offered({}, "tgd"), Words{});
}

}  // namespace
}  // namespace tg::ctl
