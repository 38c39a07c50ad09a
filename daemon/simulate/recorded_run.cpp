#include "daemon/simulate/recorded_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "daemon/membership/view.h"
#include "daemon/store/run_files.h"
#include "kernels/base/hex.h"
#include "kernels/base/regular_file.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

constexpr const char* kMembersFile = "members.json";
constexpr std::uint64_t kMaxMetricsBytes = std::uint64_t{4} << 30;

// kNotFound if it is not there.
Result<std::string> text_of(const std::string& path, std::uint64_t most_bytes) {
  Result<std::string> text = RegularFile::text(path, most_bytes);
  if (!text) return Error{text.error().kind, "cannot read " + path + ": " + text.error().message};
  return text;
}

Result<RunRecord> record_in(const std::string& directory) {
  const std::string path = directory + "/" + kRecordFile;
  const Result<std::string> text = text_of(path, schema::kMaxRecordBytes);
  if (!text)
    return Error{text.error().kind, text.error().message + "; recompute takes a folder that tgctl fetch made of a run"};
  Result<RunRecord> record = record_from_json(*text);
  if (!record) return Error{ErrorKind::kCorrupt, path + " is damaged: " + record.error().message};
  const schema::RunState state = record->status.state;
  if (!record->has_begun())
    return Error{ErrorKind::kRefused, "run " + record->id + " never began: there is nothing to compute"};
  if (!schema::has_ended(state))
    return Error{ErrorKind::kRefused, "run " + record->id + " was " + to_word(state) + " when " + path +
                                          " was written; stop it, or wait for its end, and fetch it then"};
  const schema::MemberStatus& own = record->own_row();
  if (own.digest == 0 || own.digest_step == 0)
    return Error{ErrorKind::kRefused,
                 "run " + record->id + " is " + to_word(state) + " without a state: no digest of any step is recorded"};
  return record;
}

// A file that is not what its writer's record says is no past of the run: what it lacks could not be compared.
Status check_unchanged(const std::string& directory, const RunRecord& record) {
  const auto changed = [](const std::string& path, const std::string& why) {
    return Error{ErrorKind::kCorrupt, path + " is not as it was written: " + why + "; fetch the run again"};
  };
  const std::string path = directory + "/" + kRecordFile;
  const std::uint64_t spec_hash = schema::hash_text(record.spec);
  if (record.spec_hash != 0 && spec_hash != record.spec_hash)
    return changed(path, "its job has hash " + hex_digest(spec_hash) + " and not " + hex_digest(record.spec_hash));
  const schema::MemberStatus own = RunRecord(record).own_row();
  const schema::RunStatus& run = record.status;
  if (run.digest != 0 && run.digest_step == own.digest_step && run.digest != own.digest)
    return changed(path, "of step " + std::to_string(own.digest_step) + " the run has digest " +
                             hex_digest(run.digest) + ", and its member " + hex_digest(own.digest));
  for (const char* const name : {kViewsFile, kMetricsFile}) {
    const auto mark = record.files.find(name);
    if (mark == record.files.end()) continue;
    const Result<engine::FileMark> now = engine::mark_of_file(directory + "/" + name);
    if (!now) return now.error();
    if (*now != mark->second)
      return changed(directory + "/" + name, "its SHA-256 is " + now->sha256 + " and not " + mark->second.sha256);
  }
  return {};
}

// What members.json says; of its writer run.json says it too.
Result<std::map<std::string, MemberRecord>> members_in(const std::string& directory, const RunRecord& record) {
  std::map<std::string, MemberRecord> members;
  const std::string path = directory + "/" + kMembersFile;
  const Result<std::string> text = text_of(path, schema::kMaxMembers * schema::kMaxRecordBytes);
  if (!text && text.error().kind != ErrorKind::kNotFound) return text.error();
  try {
    const auto json = text ? schema::OrderedJson::parse(*text) : schema::OrderedJson::object();
    if (!json.is_object()) return Error{ErrorKind::kCorrupt, path + " is damaged: it is no object of nodes"};
    for (const auto& [node, own] : json.items()) {
      std::string problem;
      MemberRecord member;
      if (!own.is_object()) return Error{ErrorKind::kCorrupt, path + " is damaged: " + node + " is no object"};
      fields(member, schema::JsonReader(own, problem));
      if (!problem.empty()) return Error{ErrorKind::kCorrupt, path + " is damaged: " + problem};
      members[node] = std::move(member);
    }
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, path + " is damaged: " + error.what()};
  }
  members[record.node] = record.own;
  return members;
}

// Lines that cannot be read say nothing. null is a loss that is not finite.
Result<std::map<std::uint64_t, double>> losses_in(const std::string& directory) {
  std::map<std::uint64_t, double> losses;
  const Result<std::string> text = text_of(directory + "/" + kMetricsFile, kMaxMetricsBytes);
  if (!text && text.error().kind == ErrorKind::kNotFound) return losses;
  if (!text) return text.error();
  for (std::size_t begin = 0, end = text->find('\n'); end != std::string::npos;
       begin = end + 1, end = text->find('\n', begin)) {
    const auto row = nlohmann::json::parse(text->begin() + static_cast<std::ptrdiff_t>(begin),
                                           text->begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!row.is_object() || !row.contains("step") || !row.contains("loss")) continue;
    if (row["step"].is_number_unsigned() && (row["loss"].is_number() || row["loss"].is_null()))
      losses[row["step"].get<std::uint64_t>()] = row["loss"].is_null() ? std::nan("") : row["loss"].get<double>();
  }
  return losses;
}

Result<schema::JobSpec> job_of(const RunRecord& record, const ViewInterval& interval) {
  Result<schema::JobSpec> job = schema::parse_job(record.spec, kRecordFile);
  if (!job) return job;
  for (const auto& [key, value] : interval.settings)
    if (const Status set = schema::set_job_key(*job, key + "=" + value); !set)
      return Error{ErrorKind::kCorrupt, std::string(kViewsFile) + " is damaged: " + set.error().message};
  return job;
}

Error odd_line(const ViewInterval& interval, const std::string& why) {
  return {ErrorKind::kCorrupt, "the past of the run is damaged: lineage " + std::to_string(interval.lineage) +
                                   ", view " + std::to_string(interval.view) + " " + why};
}

}  // namespace

Result<std::vector<Leg>> legs_of(const RunRecord& record, std::vector<ViewInterval> past) {
  const ViewInterval newest = interval_of(record);
  if (!past.empty() && past.back().same_as(newest)) past.pop_back();
  past.push_back(newest);
  const schema::MemberStatus own = RunRecord(record).own_row();
  std::vector<Leg> legs;
  // From the end back to the beginning.
  std::uint64_t last = own.digest_step, digest = own.digest;
  for (std::size_t i = past.size(); last > 0;) {
    Leg leg{past[i - 1], {}, past[i - 1].from.step, last, digest};
    const schema::StateId from = leg.interval.from;
    for (const ViewInterval& one : past)
      if (one.lineage == leg.interval.lineage && one.view == View::kFirst)
        leg.first_weights = std::accumulate(one.weights.begin(), one.weights.end(), std::uint64_t{0});
    const Result<schema::JobSpec> job = job_of(record, leg.interval);
    if (!job) return job.error();
    leg.job = *job;
    const Result<std::uint64_t> steps =
        schema::resolved_steps(*job, record.status.training_samples, std::max<std::uint64_t>(record.global_batch, 1));
    if (!steps) return steps.error();
    leg.job.steps = *steps;
    leg.job.target_accuracy = 0;  // it ended where its record says
    leg.job.patience = 0;
    if (leg.first > leg.last || leg.last > leg.job.steps)
      return odd_line(leg.interval, "goes from step " + std::to_string(leg.first) + " to " + std::to_string(leg.last) +
                                        " of " + std::to_string(leg.job.steps));
    if (leg.interval.members.empty() || leg.interval.weights.size() != leg.interval.members.size() ||
        std::set(leg.interval.members.begin(), leg.interval.members.end()).size() != leg.interval.members.size())
      return odd_line(leg.interval, "does not say whose it was, or how they shared a batch");
    if (leg.first < leg.last) legs.push_back(leg);
    last = from.step;
    digest = from.digest;
    if (last == 0) break;
    const auto before =
        std::find_if(past.rend() - static_cast<std::ptrdiff_t>(i - 1), past.rend(),
                     [&](const ViewInterval& one) { return one.lineage == from.lineage && one.view == from.view; });
    if (before == past.rend())
      return odd_line(leg.interval, "began with a state of lineage " + std::to_string(from.lineage) + ", view " +
                                        std::to_string(from.view) + ", which " + kViewsFile + " does not have");
    i = static_cast<std::size_t>(past.rend() - before);
  }
  std::ranges::reverse(legs);
  return legs;
}

Result<RecordedRun> read_recorded_run(const std::string& directory) {
  Result<RunRecord> record = record_in(directory);
  if (!record) return record.error();
  if (const Status same = check_unchanged(directory, *record); !same) return same.error();
  RecordedRun run;
  run.record = *std::move(record);
  const Result<schema::JobSpec> job = job_of(run.record, {});
  if (!job) return job.error();
  run.job = *job;
  const std::vector<ViewInterval> past = intervals_in(directory + "/" + kViewsFile);
  std::set<std::string> names(run.record.member_names.begin(), run.record.member_names.end());
  for (const ViewInterval& interval : past) names.insert(interval.members.begin(), interval.members.end());
  run.trained.assign(names.begin(), names.end());
  run.names = run.record.nodes.empty() ? run.trained : run.record.nodes;
  for (const std::string& node : run.trained)
    if (!std::ranges::count(run.names, node))
      return Error{ErrorKind::kCorrupt,
                   directory + "/run.json is damaged: " + node + " was a member, and nodes lacks it"};
  Result<std::vector<Leg>> legs = legs_of(run.record, past);
  if (!legs) return legs.error();
  run.legs = *std::move(legs);
  Result<std::map<std::string, MemberRecord>> members = members_in(directory, run.record);
  if (!members) return members.error();
  run.members = *std::move(members);
  Result<std::map<std::uint64_t, double>> losses = losses_in(directory);
  if (!losses) return losses.error();
  run.losses = *std::move(losses);
  return run;
}

}  // namespace tg::daemon
