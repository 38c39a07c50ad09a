#include "daemon/store/run_record.h"

#include <algorithm>
#include <map>

#include "engine/storage/sha256.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"
#include "schema/options/job.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

using schema::JsonReader;
using schema::JsonView;
using schema::MemberStatus;
using schema::OrderedJson;

constexpr std::uint64_t kRecordSchemaVersion = 1;

// Converts "key = value" lines to an object of strings. The object sorts its keys, as the canonical job does.
OrderedJson spec_to_json(const std::string& spec) {
  std::map<std::string, std::string> lines;
  std::size_t begin = 0;
  while (begin < spec.size()) {
    const std::size_t end = std::min(spec.find('\n', begin), spec.size());
    const std::string line = spec.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const auto trimmed = [](const std::string& text) {
      const std::size_t first = text.find_first_not_of(' ');
      if (first == std::string::npos) return std::string();
      return text.substr(first, text.find_last_not_of(' ') - first + 1);
    };
    lines[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  return lines.empty() ? OrderedJson::object() : OrderedJson(lines);
}

void spec_from_json(const OrderedJson& spec, RunRecord& record, JsonReader& reader) {
  std::map<std::string, std::string> lines;
  for (const auto& [key, value] : spec.items()) {
    if (!value.is_string()) return reader.set_problem("spec", "an object of strings");
    lines[key] = value.get<std::string>();
  }
  for (const auto& [key, value] : lines)  // as canonical_job() writes it, which spec_hash covers
    record.spec += key + " =" + (value.empty() ? "" : " ") + value + "\n";
  if (record.spec.size() > schema::kMaxSpecBytes) reader.set_problem("spec", "of a job's size");
}

// The settings of the job that a resume may change.
std::map<std::string, std::string> settings_of(const std::string& spec) {
  std::map<std::string, std::string> settings;
  const Result<schema::JobSpec> job = schema::parse_job(spec, "run.json");
  if (!job) return settings;
  for (const schema::Option<schema::JobSpec>& option : schema::job_options())
    if (option.resumable) settings[option.name] = option.get(*job);
  return settings;
}

const OrderedJson& object_of(const OrderedJson& root, const char* key, JsonReader& reader) {
  static const OrderedJson empty = OrderedJson::object();
  const auto found = root.find(key);
  if (found == root.end() || found->is_null()) return empty;
  if (found->is_object()) return *found;
  reader.set_problem(key, "an object");
  return empty;
}

Result<RunRecord> from_json(const OrderedJson& root) {
  if (!root.is_object()) return Error{ErrorKind::kCorrupt, "not a JSON object"};
  const auto said = root.find("schema_version");
  const std::uint64_t version = said != root.end() && said->is_number_unsigned() ? said->get<std::uint64_t>() : 0;
  if (version != kRecordSchemaVersion)
    return Error{ErrorKind::kCorrupt,
                 "schema_version is " + std::to_string(version) + ", this tgd reads " +
                     std::to_string(kRecordSchemaVersion) +
                     (version > kRecordSchemaVersion ? "; a newer tgd wrote it, and reads it" : "")};
  std::string problem;
  RunRecord record;
  JsonReader reader(root, problem);
  for (const char* const key : {"id", "state"})
    if (!root.contains(key)) reader.set_problem(key, "there");
  fields(record, reader);
  record.status.view = record.view;
  record.status.view_step = record.from.step;
  record.status.evaluated = root.contains("evaluation") && root["evaluation"].is_object();
  for (const std::string& name : record.member_names)  // a bad name would make the peers refuse the whole status
    if (!schema::is_node_name(name)) reader.set_problem("members", "a list of names");
  for (const schema::Departure& one : record.status.departed)
    if (!schema::is_node_name(one.node)) reader.set_problem("left", "a list of departures");
  for (const auto& [name, end] : record.others)
    if (!schema::is_node_name(name) || record.others.size() > schema::kMaxMembers)
      reader.set_problem("others", "an object of nodes");
  for (const auto& [name, build] : record.builds)
    if (!schema::is_node_name(name) || record.builds.size() > schema::kMaxMembers)
      reader.set_problem("builds", "an object of builds");
  MemberStatus& row = record.status.members.emplace_back();
  JsonReader own_reader(object_of(root, "own", reader), problem);
  fields(record.own, own_reader);
  fields(row, own_reader);
  record.node = record.own.node;
  spec_from_json(object_of(root, "spec", reader), record, reader);
  if (!problem.empty()) return Error{ErrorKind::kCorrupt, problem};
  record.status.global_batch = record.global_batch;
  if (Result<schema::JobSpec> job = schema::parse_job(record.spec, "run.json"); record.has_begun() && job.ok())
    record.status.settings = schema::changed_keys(*job, schema::kMaxSettingsBytes);
  return record;
}

}  // namespace

schema::MemberStatus& RunRecord::own_row() {
  for (MemberStatus& row : status.members)
    if (row.node == node) return row;
  return status.members.emplace_back(MemberStatus{.node = node, .state = status.state});
}

ViewInterval interval_of(const RunRecord& record) {
  const schema::RunStatus& status = record.status;
  // If the run continued without this node, the status may have the others' step.
  const auto own = std::ranges::find(status.members, record.node, &MemberStatus::node);
  return {.lineage = status.lineage,
          .key = record.key,
          .view = record.view,
          .from = record.from,
          .to_step = own == status.members.end() ? status.step : std::min(own->step, status.step),
          .members = record.member_names,
          .weights = record.weights,
          .builds = record.builds,
          .settings = settings_of(record.spec),
          .unasked = record.unasked,
          .ended = to_word(status.state) + (status.reason.empty() ? "" : ": " + status.reason)};
}

schema::RunStatus status_of(const RunRecord& record) {
  schema::RunStatus status = record.status;
  for (const std::string& name : record.member_names) {
    const bool has_row = std::ranges::count(status.members, name, &schema::MemberStatus::node) > 0;
    if (!has_row) status.members.push_back({.node = name, .state = status.state});
  }
  for (schema::MemberStatus& row : status.members) {
    const auto end = record.others.find(row.node);
    if (end == record.others.end()) continue;
    row.save = end->second.save;
    row.problem = end->second.problem;
  }
  std::ranges::sort(status.members, {}, &schema::MemberStatus::node);
  if (record.aside.empty()) return status;
  const bool told = record.aside.find(status.reason) != std::string::npos;
  status.reason = schema::clip_text(told ? record.aside : record.aside + "; " + status.reason, schema::kMaxReasonBytes);
  return status;
}

std::string record_to_json(const RunRecord& record) {
  OrderedJson root = {{"schema_version", kRecordSchemaVersion}};
  root.update(to_json(record, JsonView::kKept));
  if (!record.status.evaluated) root["evaluation"] = nullptr;
  MemberStatus row;
  for (const MemberStatus& member : record.status.members)
    if (member.node == record.node) row = member;
  root["own"] = to_json(row, JsonView::kKept);
  root["own"].update(to_json(record.own, JsonView::kKept));
  root["own"]["node"] = record.node;
  if (record.node.empty()) root["own"].erase("node");  // a record that was read without one
  root["spec"] = spec_to_json(record.spec);
  // Invalid bytes in a reason (a library's message in another encoding) must not make the record unwritable.
  return root.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<RunRecord> record_from_json(const std::string& text) {
  try {
    return from_json(OrderedJson::parse(text));
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, error.what()};
  }
}

}  // namespace tg::daemon
