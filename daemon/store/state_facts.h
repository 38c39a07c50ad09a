// What a state file says of itself in its metadata (texts by name, which a safetensors file may carry):
//
//   format    "pt"
//   run       the run's id
//   key       of the lineage: 16 hexadecimal digits
//   lineage, view, step, digest    which state it is; the digest in hexadecimal
//   spec      canonical job of that lineage
//   counters  JSON: what status goes on from
//   description, best-step, and the hashes    store/artefacts.h
//
// The version before had neither key, lineage, spec nor counters: lineage 1. All members write the same. Pure values;
// any thread.
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
  std::uint64_t key = 0;  // 0: written by the version before
  schema::StateId id;
  std::string spec;
  schema::StateCounters counters;
};

// Of these a model file says nothing: they are for going on.
inline constexpr std::array<const char*, 4> kStateOnly = {"key", "lineage", "spec", "counters"};

std::map<std::string, std::string> metadata_of(const StateFacts& facts);
// An error (kCorrupt) is a phrase that follows the file's name: "is damaged: its metadata have no step".
Result<StateFacts> facts_in(const std::map<std::string, std::string>& metadata);

}  // namespace tg::daemon
