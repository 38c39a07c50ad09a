#include "daemon/store/run_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "kernels/base/sha256.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

using nlohmann::json;
using schema::MemberStatus;
using schema::RunStatus;

constexpr std::uint64_t kRecordSchemaVersion = 1;

// The inverse of format_utc.
std::optional<std::int64_t> from_utc(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, milli = 0, used = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour, &minute,
                                 &second, &milli, &used);
  if (fields != 7 || used != 24 || text.size() != 24) return std::nullopt;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  const bool in_range =
      date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60 && milli >= 0;
  if (!in_range) return std::nullopt;
  const auto whole_days = sys_days{date}.time_since_epoch();
  return duration_cast<milliseconds>(whole_days + hours{hour} + minutes{minute} + seconds{second}).count() + milli;
}

// "key = value" lines as an object of strings, and back. The object sorts its keys, as the canonical job does.
json spec_to_json(const std::string& spec) {
  json object = json::object();
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
    object[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  return object;
}

// Reads fields of one object; remembers the first one that is off. An absent field keeps its default.
class Fields {
 public:
  Fields(const json& object, std::string& problem) : object_(object), problem_(problem) {}

  void text(const char* key, std::string& value, std::size_t most_bytes) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return complain(key, "a string");
    value = schema::clip_text(found->get_ref<const std::string&>(), most_bytes);
  }
  void count(const char* key, std::uint64_t& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_unsigned()) return complain(key, "a whole number");
    value = found->get<std::uint64_t>();
  }
  void real(const char* key, double& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (found->is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (found->is_number()) {
      value = found->get<double>();
    } else {
      complain(key, "a number");
    }
  }
  void hash(const char* key, std::uint64_t& value) {
    std::string digits;
    if (find(key) == nullptr) return;
    text(key, digits, 64);
    if (const auto parsed = parse_hex_digest(digits)) {
      value = *parsed;
    } else {
      complain(key, "16 hexadecimal digits");
    }
  }
  void time(const char* key, std::int64_t& value_ms) {
    std::string utc;
    if (find(key) == nullptr) return;
    text(key, utc, 64);
    if (const auto parsed = from_utc(utc)) {
      value_ms = *parsed;
    } else {
      complain(key, "a time like 2017-12-04T09:00:00.000Z");
    }
  }
  void state(const char* key, schema::RunState& value) {
    std::string name;
    if (find(key) == nullptr) return;
    text(key, name, 64);
    if (const auto parsed = schema::parse_run_state(name)) {
      value = *parsed;
    } else {
      complain(key, "a state of a run");
    }
  }
  // A nested object, or an empty one where it is absent or null.
  const json& object(const char* key) {
    static const json empty = json::object();
    const json* found = find(key);
    if (found == nullptr || found->is_null()) return empty;
    if (found->is_object()) return *found;
    complain(key, "an object");
    return empty;
  }
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void complain(const char* key, const char* wanted) {
    if (problem_.empty()) problem_ = std::string("field ") + key + " is not " + wanted;
  }

 private:
  const json& object_;
  std::string& problem_;
};

schema::SaveState parse_save(const std::string& word) {
  return from_word<schema::SaveState>(word).value_or(schema::SaveState::kNone);
}

json others_to_json(const RunRecord& record) {
  json others = json::object();
  for (const auto& [node, end] : record.others) others[node] = {{"save", to_word(end.save)}, {"problem", end.problem}};
  return others;
}

void others_from_json(const json& others, RunRecord& record, std::string& problem) {
  for (const auto& [node, about] : others.items()) {
    if (!schema::is_node_name(node) || !about.is_object() || record.others.size() >= schema::kMostMembers)
      return Fields(others, problem).complain("others", "an object of nodes");
    Fields fields(about, problem);
    std::string save;
    MemberEnd end;
    fields.text("save", save, schema::kMostNameBytes);
    fields.text("problem", end.problem, schema::kMostProblemBytes);
    end.save = parse_save(save);
    record.others.emplace(node, std::move(end));
  }
}

json lines_of(const std::string& text) {
  json lines = json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void choices_from_json(Fields& fields, std::string& choices) {
  const json* lines = fields.find("engine_choices");
  if (lines == nullptr) return;
  if (!lines->is_array()) return fields.complain("engine_choices", "a list of lines");
  for (const json& line : *lines) {
    if (!line.is_string()) return fields.complain("engine_choices", "a list of lines");
    choices += (choices.empty() ? "" : "\n") + line.get_ref<const std::string&>();
  }
}

json own_to_json(const RunRecord& record) {
  MemberStatus row;
  for (const MemberStatus& member : record.status.members) {
    if (member.node == record.node) row = member;
  }
  return {{"node", record.node},
          {"engine_build", record.own.engine_build},
          {"threads", record.own.threads},
          {"kernels", record.own.kernels},
          {"engine", record.own.engine},
          {"device", record.own.device},
          {"math", record.own.math},
          {"engine_choices", lines_of(record.own.engine_choices)},
          {"state", to_word(row.state)},
          {"step", row.step},
          {"digest", hex_digest(row.digest)},
          {"digest_step", row.digest_step},
          {"wait_share", row.wait_share},
          {"data_wait_share", row.data_wait_share},
          {"samples", row.samples},
          {"save", to_word(row.save)},
          {"problem", row.problem}};
}

void own_from_json(Fields fields, RunRecord& record) {
  MemberStatus row;
  fields.text("node", record.node, schema::kMostNameBytes);
  row.node = record.own.node = record.node;
  fields.text("engine_build", record.own.engine_build, schema::kMostBuildBytes);
  fields.count("threads", record.own.threads);
  fields.text("kernels", record.own.kernels, schema::kMostNameBytes);
  fields.text("engine", record.own.engine, schema::kMostNameBytes);
  fields.text("device", record.own.device, schema::kMostDeviceBytes);
  fields.text("math", record.own.math, schema::kMostNameBytes);
  choices_from_json(fields, record.own.engine_choices);
  fields.state("state", row.state);
  fields.count("step", row.step);
  fields.hash("digest", row.digest);
  fields.count("digest_step", row.digest_step);
  fields.real("wait_share", row.wait_share);
  fields.real("data_wait_share", row.data_wait_share);
  std::uint64_t samples = 0;
  fields.count("samples", samples);
  row.samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(samples, UINT32_MAX));
  std::string save;
  fields.text("save", save, schema::kMostNameBytes);
  fields.text("problem", row.problem, schema::kMostProblemBytes);
  row.save = parse_save(save);
  record.status.members = {row};
}

void members_from_json(Fields fields, RunRecord& record) {
  const json* names = fields.find("members");
  if (names == nullptr) return;
  if (!names->is_array() || names->size() > schema::kMostMembers) return fields.complain("members", "a list of names");
  for (const json& name : *names) {
    // A bad name would make the peers refuse this node's whole part of a status.
    if (!name.is_string() || !schema::is_node_name(name.get_ref<const std::string&>())) {
      return fields.complain("members", "a list of names");
    }
    record.member_names.push_back(name.get<std::string>());
  }
}

void weights_from_json(Fields fields, RunRecord& record) {
  const json* weights = fields.find("weights");
  if (weights == nullptr) return;
  if (!weights->is_array() || weights->size() > schema::kMostMembers)
    return fields.complain("weights", "a list of weights");
  for (const json& weight : *weights) {
    if (!weight.is_number_unsigned() || weight.get<std::uint64_t>() > schema::kMostWeight)
      return fields.complain("weights", "a list of weights");
    record.weights.push_back(weight.get<std::uint16_t>());
  }
}

json files_to_json(const RunRecord& record) {
  json files = json::object();
  for (const auto& [name, mark] : record.files) files[name] = {{"bytes", mark.bytes}, {"sha256", mark.sha256}};
  return files;
}

void files_from_json(const json& files, RunRecord& record, std::string& problem) {
  for (const auto& [name, about] : files.items()) {
    if (!about.is_object()) return Fields(files, problem).complain("files", "an object of objects");
    engine::FileMark mark;
    Fields fields(about, problem);
    fields.count("bytes", mark.bytes);
    fields.text("sha256", mark.sha256, kSha256HexDigits);
    record.files.emplace(name, std::move(mark));
  }
}

void spec_from_json(Fields fields, RunRecord& record) {
  const json& spec = fields.object("spec");
  for (const auto& [key, value] : spec.items()) {
    if (!value.is_string()) return fields.complain("spec", "an object of strings");
    record.spec += key + " = " + value.get_ref<const std::string&>() + "\n";
  }
  if (record.spec.size() > schema::kMostSpecBytes) fields.complain("spec", "of a job's size");
}

void progress_from_json(Fields fields, RunStatus& status, std::string& problem) {
  fields.count("step", status.step);
  fields.count("steps", status.steps);
  fields.count("parameters", status.parameters);
  fields.real("loss", status.loss);
  fields.real("learning_rate", status.learning_rate);
  fields.real("samples_per_second", status.samples_per_second);
  fields.hash("digest", status.digest);
  fields.count("digest_step", status.digest_step);

  const json* evaluation = fields.find("evaluation");
  status.evaluated = evaluation != nullptr && evaluation->is_object();
  Fields evaluated(fields.object("evaluation"), problem);
  evaluated.count("step", status.evaluation_step);
  evaluated.real("accuracy", status.evaluation_accuracy);
  evaluated.real("accuracy_5", status.evaluation_accuracy_5);
  evaluated.real("loss", status.evaluation_loss);

  Fields traffic(fields.object("traffic"), problem);
  traffic.real("code_bits_per_parameter", status.code_bits_per_parameter);
  traffic.real("sent_bits_per_parameter", status.sent_bits_per_parameter);
  traffic.real("sent_bytes_per_step", status.sent_bytes_per_step);
  traffic.real("zeros", status.zeros);
}

Result<RunRecord> from_json(const json& root) {
  std::string problem;
  RunRecord record;
  RunStatus& status = record.status;
  if (!root.is_object()) return Error{ErrorKind::kCorrupt, "not a JSON object"};
  Fields fields(root, problem);
  std::uint64_t version = 0, view = 1;
  fields.count("schema_version", version);
  if (version != kRecordSchemaVersion) {
    return Error{ErrorKind::kCorrupt,
                 "schema_version is " + std::to_string(version) + ", this tgd reads " +
                     std::to_string(kRecordSchemaVersion) +
                     (version > kRecordSchemaVersion ? "; a newer tgd wrote it, and reads it" : "")};
  }
  fields.text("id", record.id, schema::kMostRunIdBytes + 1);
  if (!schema::is_run_id(record.id)) fields.complain("id", "a run's id");
  status.id = record.id;
  if (fields.find("state") == nullptr) fields.complain("state", "there");
  fields.state("state", status.state);
  fields.text("reason", status.reason, schema::kMostReasonBytes);
  fields.time("since", status.since_ms);
  fields.time("started", status.started_ms);
  if (const json* fetched = fields.find("fetched"); fetched != nullptr && !fetched->is_null())
    fields.time("fetched", record.fetched_ms);
  fields.text("build", record.build, schema::kMostBuildBytes);
  fields.text("model", status.model, schema::kMostNameBytes);
  fields.text("data", status.data, schema::kMostNameBytes);
  fields.text("exchange", status.exchange, schema::kMostNameBytes);
  if (fields.find("coding") != nullptr)
    fields.text("coding", status.coding, schema::kMostNameBytes);  // not in older records
  fields.text("gradients", status.gradients, schema::kMostNameBytes);
  fields.count("seed", record.seed);
  fields.count("view", view);
  if (view > std::numeric_limits<std::uint32_t>::max()) fields.complain("view", "a view's number");
  record.view = static_cast<std::uint32_t>(view);
  fields.hash("initial_digest", record.initial_digest);
  status.initial_digest = record.initial_digest;
  Fields hashes(fields.object("hashes"), problem);
  hashes.hash("spec", record.spec_hash);
  hashes.hash("model", record.model_hash);
  hashes.hash("data", record.data_hash);
  progress_from_json(fields, status, problem);
  own_from_json(Fields(fields.object("own"), problem), record);
  members_from_json(fields, record);
  weights_from_json(fields, record);
  spec_from_json(fields, record);
  files_from_json(fields.object("files"), record, problem);
  others_from_json(fields.object("others"), record, problem);
  fields.hash("key", record.key);
  fields.text("checkpoint", record.checkpoint, schema::kMostNameBytes);
  if (!problem.empty()) return Error{ErrorKind::kCorrupt, problem};
  return record;
}

}  // namespace

schema::MemberStatus& RunRecord::own_row() {
  for (MemberStatus& row : status.members)
    if (row.node == node) return row;
  return status.members.emplace_back(MemberStatus{node, status.state, 0, 0, 0, 0});
}

std::string record_to_json(const RunRecord& record) {
  const RunStatus& status = record.status;
  nlohmann::ordered_json root = {{"schema_version", kRecordSchemaVersion},
                                 {"id", record.id},
                                 {"state", to_word(status.state)},
                                 {"reason", schema::clip_text(status.reason, schema::kMostReasonBytes)},
                                 {"since", format_utc(status.since_ms)},
                                 {"started", format_utc(status.started_ms)},
                                 {"build", record.build},
                                 {"model", status.model},
                                 {"data", status.data},
                                 {"exchange", status.exchange},
                                 {"coding", status.coding},
                                 {"gradients", status.gradients},
                                 {"seed", record.seed},
                                 {"view", record.view},
                                 {"step", status.step},
                                 {"steps", status.steps},
                                 {"parameters", status.parameters},
                                 {"loss", status.loss},
                                 {"learning_rate", status.learning_rate},
                                 {"samples_per_second", status.samples_per_second},
                                 {"evaluation", nullptr},
                                 {"digest", hex_digest(status.digest)},
                                 {"digest_step", status.digest_step},
                                 {"initial_digest", hex_digest(record.initial_digest)}};
  if (status.evaluated) {
    root["evaluation"] = {
        {"step", status.evaluation_step}, {"accuracy", status.evaluation_accuracy}, {"loss", status.evaluation_loss}};
    if (status.evaluation_accuracy_5 > 0) root["evaluation"]["accuracy_5"] = status.evaluation_accuracy_5;
  }
  root["hashes"] = {{"spec", hex_digest(record.spec_hash)},
                    {"model", hex_digest(record.model_hash)},
                    {"data", hex_digest(record.data_hash)}};
  root["traffic"] = {{"code_bits_per_parameter", status.code_bits_per_parameter},
                     {"sent_bits_per_parameter", status.sent_bits_per_parameter},
                     {"sent_bytes_per_step", status.sent_bytes_per_step},
                     {"zeros", status.zeros}};
  root["members"] = record.member_names;
  root["weights"] = record.weights;
  root["own"] = own_to_json(record);
  root["spec"] = spec_to_json(record.spec);
  root["files"] = files_to_json(record);
  root["others"] = others_to_json(record);
  root["key"] = hex_digest(record.key);
  root["checkpoint"] = record.checkpoint;
  root["fetched"] = record.fetched_ms == 0 ? json(nullptr) : json(format_utc(record.fetched_ms));
  // Foreign bytes in a reason (a library's message in another encoding) must not cost the record.
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<RunRecord> record_from_json(const std::string& text) {
  try {
    return from_json(json::parse(text));
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, error.what()};
  }
}

}  // namespace tg::daemon
