// A member's run.json, with the hashes of the files that the member wrote. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/storage/sha256.h"
#include "kernels/base/status.h"

namespace tg::ctl {

struct MemberRecord {
  std::string node;
  std::string json;  // the text of run.json
  std::uint64_t digest = 0, digest_step = 0;
  std::map<std::string, FileMark> files;  // by name; older records have none
  bool traced = false;                    // the run has trace = true
  std::optional<FileMark> mark(const std::string& file) const;
};

// Never throws, whatever the text; an error (kCorrupt) completes "NODE's run.json is damaged: ".
Result<MemberRecord> parse_member_record(const std::string& node, std::string json, const std::string& run);

// The text of members.json, for `tgd recompute`: the members' engines and threads by node, from their records. Records
// without text are left out.
std::string members_json(const std::vector<MemberRecord>& records);

// The most common mark of a file that is the same on all members; among equally common ones, the first.
std::optional<FileMark> common_mark(const std::vector<MemberRecord>& records, const std::string& file);

}  // namespace tg::ctl
