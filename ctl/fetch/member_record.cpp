#include "ctl/fetch/member_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/hex.h"

namespace tg::ctl {

std::optional<FileMark> MemberRecord::mark(const std::string& file) const {
  const auto found = files.find(file);
  return found == files.end() ? std::nullopt : std::optional(found->second);
}

Result<MemberRecord> parse_member_record(const std::string& node, std::string json, const std::string& run) {
  MemberRecord record;
  record.node = node;
  try {
    const nlohmann::json root = nlohmann::json::parse(json);
    if (root.at("id") != run || root.at("own").at("node") != node)
      return Error{ErrorKind::kCorrupt, "it belongs to another run or node"};
    const auto digest = parse_hex_digest(root.at("own").at("digest").get<std::string>());
    if (!digest) return Error{ErrorKind::kCorrupt, "it has no valid digest"};
    record.digest = *digest;
    record.digest_step = root.at("own").at("digest_step").get<std::uint64_t>();
    const nlohmann::json none = nlohmann::json::object();
    for (const auto& [name, mark] : (root.contains("files") ? root.at("files") : none).items())
      record.files[name] = {mark.at("bytes").get<std::uint64_t>(), mark.at("sha256").get<std::string>()};
    record.traced = root.contains("spec") && root.at("spec").value("trace", "") == "true";
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorKind::kCorrupt, error.what()};
  }
  record.json = std::move(json);
  return record;
}

std::string members_json(const std::vector<MemberRecord>& records) {
  // The keys that a member's bits depend on; all others are in run.json.
  constexpr const char* kKeys[] = {"engine_build", "threads", "kernels", "engine", "device", "math", "engine_choices"};
  nlohmann::ordered_json members = nlohmann::ordered_json::object();
  for (const MemberRecord& record : records) {
    const auto root = nlohmann::ordered_json::parse(record.json, nullptr, false);
    if (!root.is_object() || !root.contains("own")) continue;
    nlohmann::ordered_json& member = members[record.node];
    for (const char* const key : kKeys)
      if (root["own"].contains(key)) member[key] = root["own"][key];
  }
  return members.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<FileMark> common_mark(const std::vector<MemberRecord>& records, const std::string& file) {
  std::optional<FileMark> common;
  std::ptrdiff_t max = 0;
  for (const MemberRecord& record : records) {
    const std::optional<FileMark> mark = record.mark(file);
    if (!mark) continue;
    const auto count = std::count_if(records.begin(), records.end(),
                                     [&](const MemberRecord& other) { return other.mark(file) == mark; });
    if (count > max) {
      max = count;
      common = mark;
    }
  }
  return common;
}

}  // namespace tg::ctl
