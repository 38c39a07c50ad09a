// The facts about a state that its file carries as metadata (texts by name in a safetensors file):
//
//   format    "pt"
//   run       the run's id
//   key       the lineage's key: 16 hexadecimal digits
//   lineage, view, step, digest    which state it is; the digest in hexadecimal
//   spec      canonical job of that lineage
//   counters  JSON: the counters with which status continues
//   description, best-step, and the hashes    store/artefacts.h
//
// The version before this one wrote no key, lineage, spec or counters: lineage 1. All members write the same. Pure
// values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "schema/control/status.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

struct StateFacts {
  std::string run;
  std::uint64_t key = 0;  // 0 = written by the version before this one
  schema::StateId id;
  std::string spec;
  schema::StateCounters counters;
};

// The entries that only a resume needs; a model file does not have them.
inline constexpr std::array<const char*, 4> kStateOnly = {"key", "lineage", "spec", "counters"};

std::map<std::string, std::string> to_metadata(const StateFacts& facts);
// An error (kCorrupt) is a phrase that follows the file's name: "is damaged: its metadata have no step".
Result<StateFacts> parse_facts(const std::map<std::string, std::string>& metadata);

}  // namespace tg::daemon
