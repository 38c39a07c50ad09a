#include "schema/options/simulate_command.h"

#include <algorithm>
#include <sstream>

#include "schema/limits.h"
#include "schema/options/command_words.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

constexpr const char* kHelp =
    "  $ tgd simulate deploy/jobs/lenet-mnist.job --members 16 -o lenet-16\n"
    "  $ tgd simulate my.job --weights 1,1,2 --data-dir /data -o unequal\n"
    "\n"
    "Computes a run with all its members in this process, without a network.\n"
    "\n"
    "Usage: tgd simulate JOB [OPTION]...\n"
    "\n"
    "  --members N          how many members take part\n"
    "  --weights W,W,...    instead: the weight of each member's share of a batch\n"
    "  -s, --set KEY=VALUE  set a key of the job; repeatable\n"
    "  --data-dir DIR       folder with the data; else the job's own\n"
    "  --threads N          members computed at the same time; else one per processor\n"
    "                       (the digests do not depend on it)\n"
    "  --replicas one|all   one: the first member keeps the state for all (default);\n"
    "                       all: each keeps its own, and they compare digests\n"
    "  --gradients N        write statistics of the first member's gradient every N\n"
    "                       steps to gradients.jsonl\n"
    "  -o, --output DIR     folder for the model, metrics.jsonl and run.json\n"
    "  -h, --help           print this\n"
    "\n"
    "The digests are those of as many nodes with threads = 1. DIR is then like one\n"
    "that tgctl fetch wrote: tgctl report, tgctl export and tgd recompute read it.\n"
    "SIGINT or SIGTERM saves the state and ends; the same command then resumes. Exit\n"
    "codes: 0 the run is complete, 1 it is not, 2 usage.\n";

Error usage(const std::string& message) { return {ErrorKind::kUsage, message + "; see tgd simulate --help"}; }

Result<std::vector<std::uint16_t>> parse_weights(const std::string& text) {
  std::vector<std::uint16_t> weights;
  std::istringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    const auto weight = parse_number<std::uint16_t>(item);
    if (!weight || *weight < 1 || *weight > kMaxWeight)
      return usage("--weights takes numbers from 1 to " + std::to_string(kMaxWeight) + ", with commas between them");
    weights.push_back(*weight);
  }
  return weights;
}

Status apply(const po::variables_map& given, SimulateCommand& command) {
  const std::vector<std::string> jobs = operands(given);
  if (jobs.size() != 1) return usage("simulate takes one job file");
  command.job_file = jobs.front();
  if (given.contains("set")) command.settings = given["set"].as<std::vector<std::string>>();
  if (given.contains("data-dir")) command.data_dir = given["data-dir"].as<std::string>();
  if (given.contains("threads")) command.threads = given["threads"].as<std::uint64_t>();
  if (command.threads && (*command.threads < 1 || *command.threads > kMaxThreads))
    return usage("--threads takes a number from 1 to " + std::to_string(kMaxThreads));
  const std::string replicas = given["replicas"].as<std::string>();
  if (replicas != "one" && replicas != "all") return usage("--replicas takes one or all");
  command.all_replicas = replicas == "all";
  if (given.contains("gradients")) {
    command.gradients_every = given["gradients"].as<std::uint64_t>();
    if (command.gradients_every == 0) return usage("--gradients takes a number of steps from 1");
  }
  if (!given.contains("output")) return usage("-o DIR is missing, the folder to write to");
  command.output = given["output"].as<std::string>();
  if (given.contains("weights")) {
    Result<std::vector<std::uint16_t>> weights = parse_weights(given["weights"].as<std::string>());
    if (!weights) return weights.error();
    command.weights = *std::move(weights);
    if (given.contains("members") && given["members"].as<std::uint64_t>() != command.weights.size())
      return usage("--members and --weights name different numbers of members");
  } else if (given.contains("members")) {
    command.weights.assign(std::min<std::uint64_t>(given["members"].as<std::uint64_t>(), kMaxMembers + 1), 1);
  } else {
    return usage("--members N is missing: how many take part");
  }
  if (command.weights.empty() || command.weights.size() > kMaxMembers)
    return usage("a run has from 1 to " + std::to_string(kMaxMembers) + " members");
  return {};
}

}  // namespace

Result<SimulateCommand> parse_simulate_command(int argc, const char* const* argv) {
  WordRules rules{.options = {}, .place = "simulate: ", .help = "tgd simulate --help"};
  auto add = rules.options.add_options();
  add("help,h", "");
  add("members", po::value<std::uint64_t>(), "");
  add("weights", po::value<std::string>(), "");
  add("set,s", po::value<std::vector<std::string>>(), "");
  add("data-dir", po::value<std::string>(), "");
  add("threads", po::value<std::uint64_t>(), "");
  add("replicas", po::value<std::string>()->default_value("one"), "");
  add("gradients", po::value<std::uint64_t>(), "");
  add("output,o", po::value<std::string>(), "");
  const Result<po::variables_map> given = parse_words(words_after(argc, argv, 2), rules);
  if (!given) return given.error();
  SimulateCommand command;
  if (given->contains("help"))
    command.help = kHelp;
  else if (const Status applied = apply(*given, command); !applied)
    return applied.error();
  return command;
}

}  // namespace tg::schema
