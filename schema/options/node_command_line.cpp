// The sources of a node's configuration: the file, the environment and the command line; later ones win.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

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

std::string environment_name(const std::string& key) {
  std::string name(kEnvironmentPrefix);
  for (const char c : key) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

// The values of one source. A later source replaces an earlier one's values, and its whole list of peers.
struct Source {
  struct Value {
    std::string key, value, place;
  };
  std::vector<Value> values;
};

Status apply(NodeConfig& config, const Source& source) {
  std::map<std::string, std::string> seen;
  for (const Source::Value& given : source.values) {
    const Row* row = find_option(node_options(), given.key);
    const bool of_job = find_option(job_options(), given.key) != nullptr;
    if (row == nullptr)
      return usage(given.place + unknown_key(node_options(), given.key,
                                             of_job ? "it is a key of a job, which tgctl help job explains" : "",
                                             "tgctl help node"));
    const auto [first, fresh] = seen.emplace(given.key, given.place);
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
                 (error == ENOENT ? "; tgctl help node writes such a file" : ""));
  }
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorKind::kUsage, path + ": cannot be read; is it a file?"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) return usage(path + ": too long for a configuration");
  Result<std::vector<Assignment>> assignments = parse_assignments(text, path);
  if (!assignments) return assignments.error();
  Source source;
  for (const Assignment& given : *assignments) {
    source.values.push_back({given.key, given.value, path + ":" + std::to_string(given.line) + ": "});
  }
  return source;
}

// The caller handles TGD_CONFIG. A variable whose name is close to an option's is a misspelt option. Any other one is
// somebody else's: a container platform sets TGD_SERVICE_HOST for a service named tgd.
Result<Source> read_environment(const char* const* environment, std::optional<std::string>& config_path) {
  std::vector<std::string> known{environment_name("config")};
  for (const Row& row : node_options()) known.push_back(environment_name(row.name));
  Source source;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(kEnvironmentPrefix) || equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    const std::string value(entry.substr(equals + 1));
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const std::string near = nearest(name, known);
      if (near.empty()) continue;
      return usage("environment: unknown variable " + clip_text(name, 100) + "; did you mean " + near + "?");
    }
    if (found == known.begin()) {
      config_path = value;
      continue;
    }
    const Row& row = node_options()[static_cast<std::size_t>(found - known.begin()) - 1];
    const std::string place = "environment: " + name + ": ";
    if (!row.repeated) {
      source.values.push_back({row.name, value, place});
      continue;
    }
    std::istringstream items(value);
    for (std::string item; std::getline(items, item, ',');) source.values.push_back({row.name, item, place});
  }
  return source;
}

struct Flags {
  Source source;
  std::optional<std::string> config_path;
  bool help = false, version = false, check_config = false;
};

Result<Flags> read_flags(int argc, const char* const* argv) {
  po::options_description description;
  std::vector<std::string> known;
  for (const ProgramOption& option : program_options()) {
    known.emplace_back(option.name);
    const std::string spelled = std::string(option.name) + (*option.letter == '\0' ? "" : ",") + option.letter;
    if (*option.argument == '\0')
      description.add_options()(spelled.c_str(), "");
    else
      description.add_options()(spelled.c_str(), po::value<std::string>(), "");
  }
  for (const Row& row : node_options()) {
    known.push_back(row.name);
    auto* semantic = po::value<std::string>();
    if (row.allowed == "true | false") semantic->implicit_value("true");
    description.add_options()(row.name.c_str(), semantic, "");
  }
  Flags flags;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    for (const po::option& option :
         po::command_line_parser(arguments).options(description).style(style).run().options) {
      const std::string value = option.value.empty() ? "true" : option.value[0];
      if (option.position_key >= 0)
        return usage("\"" + clip_text(value, 100) +
                     "\": tgd takes options only, such as --config tgd.conf; see --help");
      if (option.string_key == "help")
        flags.help = true;
      else if (option.string_key == "version")
        flags.version = true;
      else if (option.string_key == "check-config")
        flags.check_config = true;
      else if (option.string_key == "config")
        flags.config_path = value;
      else
        flags.source.values.push_back({option.string_key, value, "command line: "});
    }
  } catch (const po::unknown_option& unknown) {
    std::string name = unknown.get_option_name();
    name.erase(0, name.find_first_not_of('-'));
    const std::string near = nearest(name, known);
    return usage("command line: unknown option --" + clip_text(name, 100) +
                 (near.empty() ? "; see --help" : "; did you mean --" + near + "?"));
  } catch (const po::error& error) {
    return usage(std::string("command line: ") + error.what());
  }
  return flags;
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
      "tgd: a node that trains neural networks together with its peers.\n\n"
      "  tgd --config tgd.conf\n"
      "  tgd --config tgd.conf --node node-b --threads 2\n"
      "  tgd recompute DIR             computes a fetched run again; see its --help\n"
      "  tgd simulate JOB              computes a run without a mesh; see its --help\n\n"
      "Options; in the file as `key = value`, in the environment as TGD_KEY\n"
      "(TGD_PEER_TIMEOUT). Flags override the environment, which overrides the file.\n\n";
  for (const ProgramOption& option : program_options()) {
    const std::string argument = std::string(*option.argument == '\0' ? "" : " ") + option.argument;
    text += "  --" + std::string(option.name) + argument;
    if (*option.letter != '\0') text += ", -" + std::string(option.letter) + argument;
    text += "\n      " + std::string(option.help) + "\n";
  }
  const NodeConfig defaults;
  for (const Row& row : node_options()) {
    text += "  --" + row.name + (row.repeated ? " VALUE, repeated" : " VALUE") + "\n";
    const std::string& values = row.allowed.empty() ? row.form : row.allowed;
    const std::string value = row.get(defaults);
    for (const std::string& part :
         {row.help, values.empty() ? "" : "Allowed: " + values + ".", value.empty() ? "" : "Default: " + value + "."}) {
      if (part.empty()) continue;
      for (const std::string& line : wrap_text(part, kHelpColumns)) text += "      " + line + "\n";
    }
  }
  return text;
}

}  // namespace

const std::vector<ProgramOption>& program_options() {
  static const std::vector<ProgramOption> rows = {
      {"config", "c", "FILE", "Read this file."},
      {"check-config", "", "", "Say whether the configuration is good, and end."},
      {"version", "", "", "Print build, protocol, engine and kernels."},
      {"help", "h", "", "Print this."},
  };
  return rows;
}

Result<CommandLine> parse_node_command_line(int argc, const char* const* argv, const char* const* environment) {
  CommandLine line;
  Result<Flags> flags = read_flags(argc, argv);
  if (!flags) return flags.error();
  line.help = flags->help;
  line.version = flags->version;
  line.check_config = flags->check_config;
  line.help_text = make_help();
  if (line.help || line.version) return line;

  std::optional<std::string> config_path;
  Result<Source> variables = read_environment(environment, config_path);
  if (!variables) return variables.error();
  if (flags->config_path) config_path = flags->config_path;
  if (config_path) {
    Result<Source> file = read_file(*config_path);
    if (!file) return file.error();
    if (const Status status = apply(line.config, *file); !status) return status.error();
  }
  if (const Status status = apply(line.config, *variables); !status) return status.error();
  if (const Status status = apply(line.config, flags->source); !status) return status.error();
  if (!config_path && line.config.node.empty() && line.config.peers.empty())
    return usage(
        "no configuration is given, and no node: tgd --config tgd.conf; tgctl help node > tgd.conf writes a file with "
        "all keys explained");
  std::sort(line.config.peers.begin(), line.config.peers.end(),
            [](const PeerAddress& a, const PeerAddress& b) { return a.name < b.name; });
  if (const Status status = validate_node(line.config); !status) {
    return Error{status.error().kind, (config_path ? *config_path + ": " : std::string()) + status.error().message};
  }
  if (std::string missing = missing_folder(line.config.data_dir); !missing.empty())
    line.warnings.push_back(std::move(missing));
  return line;
}

}  // namespace tg::schema
