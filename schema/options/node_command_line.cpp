// The sources of a node's configuration: the file, the environment and the command line; later ones win.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "schema/options/command_words.h"
#include "schema/options/job.h"
#include "schema/options/node_config.h"
#include "schema/options/option_rows.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;
using Row = Option<NodeConfig>;

constexpr std::size_t kMaxConfigBytes = 256 * 1024;
constexpr std::size_t kHelpColumns = 74;  // 80 columns less six spaces of indent
constexpr std::string_view kEnvironmentPrefix = "TGD_";

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

// A value of one source, and where it is written: "tgd.conf:3: ".
struct Value {
  std::string key, value, place;
};
using Source = std::vector<Value>;

// A later source replaces an earlier one's values, and its whole list of peers.
Status set_values(NodeConfig& config, const Source& source) {
  std::set<std::string> seen;
  for (const Value& given : source) {
    const Row* row = find_option(node_options(), given.key);
    const bool is_job_key = find_option(job_options(), given.key) != nullptr;
    if (row == nullptr)
      return usage(given.place + unknown_key(node_options(), given.key,
                                             is_job_key ? "it is a key of a job, which tgctl help job explains" : "",
                                             "tgctl help node"));
    const bool fresh = seen.insert(given.key).second;
    if (!fresh && !row->repeated) return usage(given.place + given.key + " is set twice");
    if (fresh && row->repeated) config.peers.clear();
    const Status status = row->set(config, given.value);
    if (!status) return Error{status.error().kind, given.place + given.key + ": " + status.error().message};
    if (row->repeated) config.peers.back().place = given.place;
  }
  return {};
}

Result<Source> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    return usage(path + ": cannot be read: " + std::strerror(error) +
                 (error == ENOENT ? "; tgctl help node prints a sample" : ""));
  }
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return usage(path + ": cannot be read; is it a file?");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) return usage(path + ": too long for a configuration");
  const Result<std::vector<Assignment>> assignments = parse_assignments(text, path);
  if (!assignments) return assignments.error();
  Source source;
  for (const Assignment& given : *assignments)
    source.push_back({given.key, given.value, path + ":" + std::to_string(given.line) + ": "});
  return source;
}

WordRules make_rules() {
  WordRules rules{.options = {}, .place = "command line: ", .help = "tgd --help"};
  for (const ProgramOption& option : program_options()) {
    const std::string spelled = std::string(option.name) + (*option.letter == '\0' ? "" : ",") + option.letter;
    if (*option.argument == '\0')
      rules.options.add_options()(spelled.c_str(), "");
    else
      rules.options.add_options()(spelled.c_str(), po::value<std::string>(), "");
  }
  for (const Row& row : node_options()) {
    auto* value = po::value<std::vector<std::string>>();
    if (row.allowed == "true | false") value->implicit_value({"true"}, "true");
    rules.options.add_options()(row.name.c_str(), value, "");
  }
  return rules;
}

Source values_in(const po::variables_map& given, const std::string& place) {
  Source source;
  for (const Row& row : node_options()) {
    if (!given.contains(row.name)) continue;
    for (const std::string& value : given[row.name].as<std::vector<std::string>>()) {
      std::istringstream items(value);
      if (!row.repeated) source.push_back({row.name, value, place});
      for (std::string item; row.repeated && std::getline(items, item, ',');) source.push_back({row.name, item, place});
    }
  }
  return source;
}

// A variable whose name is close to a key's is a misspelt key. Any other one belongs to another program: a container
// platform sets TGD_SERVICE_HOST for a service named tgd.
Result<po::variables_map> read_environment(const WordRules& rules) {
  std::vector<std::string> known, keys;
  for (const auto& option : rules.options.options()) {
    if (option->semantic()->max_tokens() == 0) continue;  // --help and its like
    std::string name(kEnvironmentPrefix);
    for (const char c : keys.emplace_back(option->long_name()))
      name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
    known.push_back(std::move(name));
  }
  std::string misspelt;
  const auto key_of = [&](const std::string& variable) -> std::string {
    const auto found = std::ranges::find(known, variable);
    if (found != known.end()) return keys[static_cast<std::size_t>(found - known.begin())];
    const std::string near = variable.starts_with(kEnvironmentPrefix) ? nearest(variable, known) : "";
    if (!near.empty()) misspelt = "unknown variable " + clip_text(variable, 100) + "; did you mean " + near + "?";
    return "";
  };
  po::variables_map given;
  po::store(po::parse_environment(rules.options, key_of), given);
  if (!misspelt.empty()) return usage("environment: " + misspelt);
  return given;
}

// A warning if data-dir does not exist. It may still be mounted later, so it is not an error yet.
std::string missing_folder(const std::string& path) {
  std::error_code missing, code;
  if (path.empty() || std::filesystem::is_directory(path, missing)) return "";
  const bool found = !missing;
  const std::string from = path.starts_with('/') ? "" : " in " + std::filesystem::current_path(code).string();
  return "data-dir = " + path + (found ? " is not a folder" : ": " + missing.message()) + from +
         "; create it or correct the line, else jobs that need data are refused here";
}

std::string make_help() {
  std::string text =
      "  $ tgd --config tgd.conf\n"
      "  $ tgd --config tgd.conf --node node-b --threads 2\n"
      "\n"
      "tgd is a node of a mesh that trains neural networks together. One tgd runs on\n"
      "each machine, and no machine is special. tgctl starts and watches runs.\n"
      "\n"
      "Usage: tgd --config FILE [OPTION]...\n"
      "  or:  tgd recompute DIR [OPTION]...\n"
      "  or:  tgd simulate JOB --members N -o DIR [OPTION]...\n"
      "\n"
      "recompute computes a fetched run again and compares the digests; simulate\n"
      "computes a run without a mesh. Each has a --help of its own.\n"
      "\n"
      "Every key below may also be set in the file (key = value) and in the environment\n"
      "(TGD_KEY, such as TGD_PEER_TIMEOUT). Options override the environment, which\n"
      "overrides the file.\n\n";
  const auto add = [&text](const std::string& spelled, const std::vector<std::string>& parts) {
    text += "  " + spelled + "\n";
    for (const std::string& part : parts)
      for (const std::string& line : wrap_text(part, kHelpColumns)) text += line.empty() ? "" : "      " + line + "\n";
  };
  for (const ProgramOption& option : program_options())
    add((*option.letter == '\0' ? "" : "-" + std::string(option.letter) + ", ") + "--" + option.name +
            (*option.argument == '\0' ? "" : " ") + option.argument,
        {option.help});
  for (const Row& row : node_options()) {
    const std::string& values = row.allowed.empty() ? row.form : row.allowed;
    const std::string value = row.get(NodeConfig());
    add("--" + row.name + " VALUE" + (row.repeated ? " (repeatable)" : ""),
        {row.help, values.empty() ? "" : "Allowed: " + values + ".", value.empty() ? "" : "Default: " + value + "."});
  }
  return text;
}

}  // namespace

const std::vector<ProgramOption>& program_options() {
  static const std::vector<ProgramOption> rows = {
      {"config", "c", "FILE", "Configuration file; else TGD_CONFIG."},
      {"check-config", "", "", "Check the configuration and exit."},
      {"version", "", "", "Print build, protocol, engine and kernels."},
      {"help", "h", "", "Print this."},
  };
  return rows;
}

Result<CommandLine> parse_node_command_line(int argc, const char* const* argv) {
  const WordRules rules = make_rules();
  const Result<po::variables_map> flags = parse_words(words_after(argc, argv, 1), rules);
  if (!flags) return flags.error();
  if (const std::vector<std::string> words = operands(*flags); !words.empty())
    return usage("\"" + clip_text(words[0], 100) + "\": tgd takes only options, such as --config tgd.conf; see --help");
  CommandLine line;
  line.help = flags->contains("help");
  line.version = flags->contains("version");
  line.check_config = flags->contains("check-config");
  line.help_text = make_help();
  if (line.help || line.version) return line;

  const Result<po::variables_map> variables = read_environment(rules);
  if (!variables) return variables.error();
  std::string& path = line.path;
  for (const po::variables_map* given : {&*variables, &*flags})
    if (given->contains("config")) path = (*given)["config"].as<std::string>();
  if (!path.empty()) {
    const Result<Source> file = read_file(path);
    if (!file) return file.error();
    if (const Status status = set_values(line.config, *file); !status) return status.error();
  }
  if (const Status status = set_values(line.config, values_in(*variables, "environment: ")); !status)
    return status.error();
  if (const Status status = set_values(line.config, values_in(*flags, "command line: ")); !status)
    return status.error();
  if (path.empty() && line.config.node.empty() && line.config.peers.empty())
    return usage(
        "no configuration: run tgd --config tgd.conf; tgctl help node > tgd.conf writes a file with all keys "
        "explained");
  std::ranges::sort(line.config.peers, {}, &PeerAddress::name);
  if (const Status status = validate_node(line.config); !status)
    return Error{status.error().kind, (path.empty() ? "" : path + ": ") + status.error().message};
  line.config.nodes.set_lines(line.config.peers);
  if (std::string missing = missing_folder(line.config.data_dir); !missing.empty())
    line.warnings.push_back(std::move(missing));
  return line;
}

}  // namespace tg::schema
