#include "ctl/report/report_data.h"

#include "ctl/format/table.h"
#include "schema/options/job.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;

// The job's keys that differ from the defaults; none if this tgctl cannot parse the job.
std::string settings_in(const Json& record) {
  const auto spec = record.find("spec");
  if (spec == record.end() || !spec->is_object()) return "";
  std::string lines;
  for (const auto& [key, value] : spec->items())
    if (value.is_string()) lines += key + " = " + value.get<std::string>() + "\n";
  const Result<schema::JobSpec> job = schema::parse_job(lines, "run.json");
  return job ? schema::changed_keys(*job, schema::kMaxSettingsBytes) : "";
}

Status read_record(const std::string& text, ReportData& data) {
  data.record = Json::parse(text, nullptr, false);
  if (!data.record.is_object()) return Error{ErrorKind::kCorrupt, "not a JSON object"};
  std::string problem;
  schema::JsonReader reader(data.record, problem);
  fields(data.run, reader);
  if (!problem.empty()) return Error{ErrorKind::kCorrupt, problem};
  data.run.evaluated = data.record.contains("evaluation") && data.record["evaluation"].is_object();
  data.run.settings = settings_in(data.record);
  if (const auto own = data.record.find("own"); own != data.record.end() && own->is_object()) {
    schema::MemberStatus row;
    schema::JsonReader own_reader(*own, problem);
    fields(row, own_reader);
    if (problem.empty()) data.run.members.push_back(row);
    data.node = row.node;
    data.run.digest_step = row.digest_step;
  }
  if (const auto names = data.record.find("members"); names != data.record.end() && names->is_array())
    for (const Json& name : *names)
      if (name.is_string() && name.get<std::string>() != data.node)
        data.run.members.push_back({.node = name.get<std::string>(), .state = data.run.state, .step = data.run.step});
  return {};
}

}  // namespace

Result<ReportData> report_data(const std::string& record, const std::string& views) {
  ReportData data;
  if (const Status read = read_record(record, data); !read) return read.error();
  for (const std::string& line : lines_of(views))
    if (Json view = Json::parse(line, nullptr, false); view.is_object()) data.views.push_back(std::move(view));
  return data;
}

}  // namespace tg::ctl
