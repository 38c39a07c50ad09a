#include "schema/options/recompute_command.h"

#include "schema/limits.h"
#include "schema/options/command_words.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

constexpr const char* kHelp =
    "  $ tgctl fetch RUN -o DIR\n"
    "  $ tgd recompute DIR --data-dir /data\n"
    "\n"
    "Computes a run again and compares the result with the recorded digest.\n"
    "\n"
    "Usage: tgd recompute DIR [OPTION]...\n"
    "\n"
    "  --data-dir DIR  folder with the data; else the job's own\n"
    "  --threads N     engine threads of each member; else as recorded (with\n"
    "                  another number the last bits may differ)\n"
    "  -h, --help      print this\n"
    "\n"
    "DIR is a folder that tgctl fetch wrote, or a node's own state-dir/runs/RUN. All\n"
    "members are computed in this process: it needs the memory of all of them, and no\n"
    "network. Exit codes: 0 the digest is as recorded, 1 it is not, or the run cannot\n"
    "be computed here, 2 usage.\n";

Error usage(const std::string& message) { return {ErrorKind::kUsage, message + "; see tgd recompute --help"}; }

}  // namespace

Result<RecomputeCommand> parse_recompute_command(int argc, const char* const* argv) {
  WordRules rules{.options = {}, .place = "recompute: ", .help = "tgd recompute --help"};
  rules.options.add_options()("help,h", "")("data-dir", po::value<std::string>(), "")("threads",
                                                                                      po::value<std::uint64_t>(), "");
  const Result<po::variables_map> given = parse_words(words_after(argc, argv, 2), rules);
  if (!given) return given.error();
  RecomputeCommand command;
  if (given->contains("help")) {
    command.help = kHelp;
    return command;
  }
  const std::vector<std::string> folders = operands(*given);
  if (folders.size() != 1) return usage("recompute takes one folder, that of a fetched run");
  command.directory = folders.front();
  if (given->contains("data-dir")) command.data_dir = (*given)["data-dir"].as<std::string>();
  if (given->contains("threads")) command.threads = (*given)["threads"].as<std::uint64_t>();
  if (command.threads && (*command.threads < 1 || *command.threads > kMaxThreads))
    return usage("--threads takes a number from 1 to " + std::to_string(kMaxThreads));
  return command;
}

}  // namespace tg::schema
