// What may stand at the end of a command line, made from the tables: for the scripts of `tgctl completion`, which ask
// for it through `tgctl complete PROGRAM WORD...`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tg::ctl {

// What else may stand there, which the tables do not know; the last three a node knows.
enum class Place : std::uint8_t { kNone, kFile, kFolder, kJob, kRun, kRunOrFolder, kNode };

struct Completion {
  Place place = Place::kNone;
  std::vector<std::string> words;  // begin with what is there; of KEY=VALUE and --OPTION=VALUE the VALUE alone
  std::string begun;               // what is there
  std::string address, key_file;   // of the node to ask, as far as the line says: else ""
};

// program: "tgctl" or "tgd"; words: what stands behind it, the last one the one that is being typed (may be empty).
Completion complete(const std::string& program, const std::vector<std::string>& words);

// What the shell reads to complete both programs; the name is one of those.
const std::vector<std::string>& shells();
std::string completion_script(const std::string& shell);

}  // namespace tg::ctl
