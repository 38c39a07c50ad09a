// What a member's run.json says about the files that it wrote. Pure.
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
  std::string json;  // the whole of it
  std::uint64_t digest = 0, digest_step = 0;
  std::map<std::string, FileMark> files;  // by name; older records have none
  bool traced = false;                    // every member has a timeline
  std::optional<FileMark> mark(const std::string& file) const;
};

// Never throws, whatever the text; an error (kCorrupt) completes "NODE's run.json is damaged: ".
Result<MemberRecord> parse_member_record(const std::string& node, std::string json, const std::string& run);

// What the members computed with, for `tgd recompute`: an object of the records' own parts, by node. The text of
// members.json; records without text are left out.
std::string members_json(const std::vector<MemberRecord>& records);

// What most records say about a file that is the same on all members; the first of equally common values.
std::optional<FileMark> common_mark(const std::vector<MemberRecord>& records, const std::string& file);

}  // namespace tg::ctl
