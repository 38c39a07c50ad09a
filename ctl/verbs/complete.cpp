// Shell completion: prints where else the shell has to look (":file", ":folder", ":job" or ":none"), then a candidate
// on each line. A node that does not answer costs a second, and is not reported.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "ctl/command_line/completion.h"
#include "ctl/job_file.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

constexpr unsigned kPatienceSeconds = 1;
static_assert(kPatienceSeconds * 1000 > schema::kPeerStatusMs, "a node that waits for its peers still answers in time");

const char* word_of(Place place) {
  switch (place) {
    case Place::kFile:
      return ":file\n";
    case Place::kFolder:
    case Place::kRunOrFolder:
      return ":folder\n";
    case Place::kJob:
      return ":job\n";
    case Place::kNone:
    case Place::kRun:
    case Place::kNode:
      break;
  }
  return ":none\n";
}

std::string given_or_set(const std::string& given, const char* variable, const char* otherwise) {
  if (!given.empty()) return given;
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

void print_fitting(const Completion& completion, const std::string& word) {
  if (word.starts_with(completion.begun)) print(word + "\n");
}

void print_asked(const Completion& completion) {
  alarm(kPatienceSeconds);  // ends the process, wherever it hangs
  Result<Client> client = Client::connect(given_or_set(completion.address, "TGCTL_ADDRESS", kDefaultAddress),
                                          given_or_set(completion.key_file, "TGCTL_KEY", ""));
  if (!client) return;
  const Result<schema::MeshStatus> mesh = client->ask_for<schema::MeshStatus>(schema::StatusRequest{});
  if (!mesh) return;
  if (completion.place == Place::kRun || completion.place == Place::kRunOrFolder)
    for (const schema::RunStatus& run : mesh->runs) print_fitting(completion, run.id);
  if (completion.place == Place::kNode)
    for (const schema::NodeStatus& node : mesh->nodes) print_fitting(completion, node.name);
}

}  // namespace

int complete(const Command& command) {
  if (command.words.empty()) return kOk;
  const Completion completion = complete(command.words.front(), {command.words.begin() + 1, command.words.end()});
  print(word_of(completion.place));
  for (const std::string& word : completion.words) print(word + "\n");
  if (completion.place == Place::kJob)
    for (const std::string& job : known_jobs()) print_fitting(completion, std::filesystem::path(job).stem().string());
  if (completion.place >= Place::kRun) print_asked(completion);
  return kOk;
}

}  // namespace tg::ctl
