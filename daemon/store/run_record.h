// What is remembered of a run, and its form on disk: run.json, schema_version 1. Times are RFC 3339 UTC, hashes and
// digests hexadecimal strings, a loss that is not finite is null. Pure values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/storage/safetensors.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::daemon {

struct MemberRecord {
  std::string node;
  std::string engine_build;  // of the own node; what the others said in their votes otherwise, "" if unknown
  std::uint64_t threads = 0;
  std::string kernels;
  // What computed, of engine and math the words of the options; "" in an older record, device also for a processor.
  std::string engine, device, math;
  std::string engine_choices;  // of algorithms, by timing, a line each (Engine::choices); run.json shows a list
};

struct MemberEnd {  // what is known of another member's end of the run
  schema::SaveState save = schema::SaveState::kNone;
  std::string problem;
  bool operator==(const MemberEnd&) const = default;
};

struct RunRecord {
  std::string id;
  std::uint64_t key = 0;  // that its frames carry; 0 = it never began
  std::string spec;       // canonical job; run.json shows it as an object of strings
  std::uint64_t seed = 0;
  std::uint64_t spec_hash = 0, model_hash = 0, data_hash = 0, initial_digest = 0;
  std::string node;                       // whose record this is
  std::vector<std::string> member_names;  // by rank
  std::vector<std::uint16_t> weights;     // the same: of the members' shares of a batch; empty in an older record
  MemberRecord own;
  std::uint32_t view = 1;
  std::string build;
  std::map<std::string, engine::FileMark> files;  // that were written at the end, by name
  std::int64_t fetched_ms = 0;                    // when its model was fetched last, from whatever node; 0 = never
  std::string checkpoint;                         // the file that stands for the state where no other was written
  std::map<std::string, MemberEnd> others;        // by node
  schema::RunStatus status;                       // as of the last write; members holds the own row only
  schema::MemberStatus& own_row();
  bool begun() const { return !spec.empty(); }  // as opposed to a start that came to nothing
};

std::string record_to_json(const RunRecord& record);
// Never throws, whatever the text; an error (kCorrupt) names the first field that is off. Longer texts than
// schema/limits.h allows are clipped.
Result<RunRecord> record_from_json(const std::string& text);

}  // namespace tg::daemon
