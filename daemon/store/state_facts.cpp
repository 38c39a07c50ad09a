#include "daemon/store/state_facts.h"

#include <charconv>
#include <optional>

#include "kernels/base/hex.h"
#include "schema/described/json_form.h"

namespace tg::daemon {
namespace {

using Metadata = std::map<std::string, std::string>;

Error damaged(const std::string& what) { return {ErrorKind::kCorrupt, "is damaged: its metadata have no " + what}; }

const std::string& text(const Metadata& metadata, const char* name) {
  static const std::string none;
  const auto found = metadata.find(name);
  return found == metadata.end() ? none : found->second;
}

template <class T>
bool take(const Metadata& metadata, const char* name, T& value) {
  const std::string& digits = text(metadata, name);
  const char* const end = digits.data() + digits.size();
  const auto [stop, code] = std::from_chars(digits.data(), end, value);
  return code == std::errc() && stop == end;
}

}  // namespace

Metadata to_metadata(const StateFacts& facts) {
  return {{"format", "pt"},
          {"run", facts.run},
          {"key", hex_digest(facts.key)},
          {"lineage", std::to_string(facts.id.lineage)},
          {"view", std::to_string(facts.id.view)},
          {"step", std::to_string(facts.id.step)},
          {"digest", hex_digest(facts.id.digest)},
          {"spec", facts.spec},
          {"counters", schema::to_json(facts.counters, schema::JsonView::kKept).dump()}};
}

Result<StateFacts> parse_facts(const Metadata& metadata) {
  StateFacts facts;
  facts.run = text(metadata, "run");
  if (facts.run.empty()) return damaged("run");
  if (!take(metadata, "step", facts.id.step)) return damaged("step");
  const std::optional<std::uint64_t> digest = parse_hex_digest(text(metadata, "digest"));
  if (!digest) return damaged("digest");
  facts.id.digest = *digest;
  facts.id.lineage = facts.id.view = 1;
  if (metadata.contains("view") && !take(metadata, "view", facts.id.view)) return damaged("view");
  if (!metadata.contains("lineage")) return facts;  // written by the version before this one
  if (!take(metadata, "lineage", facts.id.lineage) || facts.id.lineage == 0) return damaged("lineage");
  const std::optional<std::uint64_t> key = parse_hex_digest(text(metadata, "key"));
  if (!key || *key == 0) return damaged("key");
  facts.key = *key;
  facts.spec = text(metadata, "spec");
  if (facts.spec.empty()) return damaged("spec");
  const auto counters = schema::parse_kept<schema::StateCounters>(text(metadata, "counters"));
  if (!counters) return damaged("counters");
  facts.counters = *counters;
  return facts;
}

}  // namespace tg::daemon
