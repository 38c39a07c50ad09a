#include "schema/options/recompute_command.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <vector>

#include "schema/limits.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

constexpr const char* kHelp =
    "tgd recompute DIR: computes a run again, and says whether it comes to the digest that is recorded.\n"
    "\n"
    "  tgctl fetch RUN -o DIR\n"
    "  tgd recompute DIR --data-dir /data\n"
    "\n"
    "DIR is what tgctl fetch made of the run, or a node's own state-dir/runs/RUN.\n"
    "All members are in this one process: it takes their memory together, and no network.\n"
    "\n"
    "  --data-dir DIR\n"
    "      Folder of the data, in place of the job's own.\n"
    "  --threads N\n"
    "      Threads of each member's engine, in place of the recorded ones: the last bits may be others.\n"
    "  --help, -h\n"
    "      Print this.\n"
    "\n"
    "Ends with 0 if all is as recorded, with 1 if not, or if it cannot be computed here, with 2 if it was asked "
    "wrongly.\n";

Error usage(const std::string& message) { return {ErrorKind::kUsage, message + "; see tgd recompute --help"}; }

}  // namespace

Result<RecomputeCommand> parse_recompute_command(int argc, const char* const* argv) {
  po::options_description description;
  description.add_options()("help,h", "")("data-dir", po::value<std::string>(), "")(
      "threads", po::value<std::uint64_t>(), "")("directory", po::value<std::vector<std::string>>(), "");
  po::positional_options_description positional;
  positional.add("directory", -1);
  RecomputeCommand command;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
    po::variables_map given;
    po::store(po::command_line_parser(arguments).options(description).positional(positional).style(style).run(), given);
    if (given.contains("help")) {
      command.help = kHelp;
      return command;
    }
    const auto folders =
        given.contains("directory") ? given["directory"].as<std::vector<std::string>>() : std::vector<std::string>();
    if (folders.size() != 1) return usage("recompute takes one folder, that of a fetched run");
    command.directory = folders.front();
    if (given.contains("data-dir")) command.data_dir = given["data-dir"].as<std::string>();
    if (given.contains("threads")) command.threads = given["threads"].as<std::uint64_t>();
  } catch (const po::error& error) {
    return usage(clip_text(error.what(), kMaxReasonBytes));
  }
  if (command.threads && (*command.threads < 1 || *command.threads > kMaxThreads))
    return usage("--threads is from 1 to " + std::to_string(kMaxThreads));
  return command;
}

}  // namespace tg::schema
