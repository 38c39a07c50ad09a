#include "schema/options/simulate_command.h"

#include <algorithm>
#include <boost/program_options.hpp>

#include "schema/limits.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

constexpr const char* kHelp =
    "tgd simulate JOB: computes a run with all its members in this one process, without a network.\n"
    "\n"
    "  tgd simulate deploy/jobs/lenet-mnist.job --members 16 --data-dir /data -o lenet-16\n"
    "\n"
    "Its digests are those of as many nodes with threads = 1. DIR is then as if tgctl fetch had made it:\n"
    "tgctl report DIR, tgctl export DIR and tgd recompute DIR read it. SIGINT or SIGTERM ends the run and saves its\n"
    "state; the same command then goes on from there.\n"
    "\n"
    "  --members N\n"
    "      How many take part.\n"
    "  --weights W,W,...\n"
    "      Instead: the weight of each one's share of a batch.\n"
    "  --set KEY=VALUE, -s KEY=VALUE\n"
    "      Sets a key of the job; may be given several times.\n"
    "  --data-dir DIR\n"
    "      Folder of the data, in place of the job's own.\n"
    "  --threads N (default: one for each processor)\n"
    "      How many members learn at the same time; the digests are the same.\n"
    "  --replicas one|all (default: one)\n"
    "      Whether the first member keeps the state for all, or each keeps it and they compare theirs.\n"
    "  --gradients N\n"
    "      Writes gradients.jsonl: what the first member's gradient looks like every N steps.\n"
    "  --output DIR, -o DIR\n"
    "      Where the model, metrics.jsonl and run.json go.\n"
    "  --help, -h\n"
    "      Print this.\n"
    "\n"
    "Ends with 0 if the run is complete, with 1 if it is not, with 2 if it was asked wrongly.\n";

Error usage(const std::string& message) { return {ErrorKind::kUsage, message + "; see tgd simulate --help"}; }

Result<std::vector<std::uint16_t>> weights_in(const std::string& text) {
  std::vector<std::uint16_t> weights;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    constexpr std::size_t kMaxDigits = 5;
    const bool number = !one.empty() && one.size() <= kMaxDigits &&
                        std::ranges::all_of(one, [](char c) { return c >= '0' && c <= '9'; });
    const unsigned long weight = number ? std::stoul(one) : 0;
    if (weight < 1 || weight > kMaxWeight)
      return usage("--weights takes numbers from 1 to " + std::to_string(kMaxWeight) + ", with commas between them");
    weights.push_back(static_cast<std::uint16_t>(weight));
    begin = end + 1;
  }
  return weights;
}

Status take(const po::variables_map& given, SimulateCommand& command) {
  const auto jobs = given.contains("job") ? given["job"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (jobs.size() != 1) return usage("simulate takes one job file");
  command.job_file = jobs.front();
  if (given.contains("set")) command.settings = given["set"].as<std::vector<std::string>>();
  if (given.contains("data-dir")) command.data_dir = given["data-dir"].as<std::string>();
  if (given.contains("threads")) command.threads = given["threads"].as<std::uint64_t>();
  if (command.threads && (*command.threads < 1 || *command.threads > kMaxThreads))
    return usage("--threads is from 1 to " + std::to_string(kMaxThreads));
  const std::string replicas = given.contains("replicas") ? given["replicas"].as<std::string>() : "one";
  if (replicas != "one" && replicas != "all") return usage("--replicas is one or all");
  command.all_replicas = replicas == "all";
  if (given.contains("gradients")) {
    command.gradients_every = given["gradients"].as<std::uint64_t>();
    if (command.gradients_every == 0) return usage("--gradients is from 1: every so many steps");
  }
  if (!given.contains("output")) return usage("-o DIR is missing: where the run goes");
  command.output = given["output"].as<std::string>();
  if (given.contains("weights")) {
    Result<std::vector<std::uint16_t>> weights = weights_in(given["weights"].as<std::string>());
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
  po::options_description description;
  auto add = description.add_options();
  add("help,h", "");
  add("members", po::value<std::uint64_t>(), "");
  add("weights", po::value<std::string>(), "");
  add("set,s", po::value<std::vector<std::string>>(), "");
  add("data-dir", po::value<std::string>(), "");
  add("threads", po::value<std::uint64_t>(), "");
  add("replicas", po::value<std::string>(), "");
  add("gradients", po::value<std::uint64_t>(), "");
  add("output,o", po::value<std::string>(), "");
  add("job", po::value<std::vector<std::string>>(), "");
  po::positional_options_description positional;
  positional.add("job", -1);
  SimulateCommand command;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
    po::variables_map given;
    po::store(po::command_line_parser(arguments).options(description).positional(positional).style(style).run(), given);
    if (given.contains("help")) {
      command.help = kHelp;
      return command;
    }
    if (const Status taken = take(given, command); !taken) return taken.error();
  } catch (const po::error& error) {
    return usage(clip_text(error.what(), kMaxReasonBytes));
  }
  return command;
}

}  // namespace tg::schema
