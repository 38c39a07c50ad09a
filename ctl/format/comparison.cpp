#include "ctl/format/comparison.h"

#include <algorithm>
#include <set>

#include "ctl/format/table.h"
#include "schema/options/job.h"
#include "schema/options/options.h"

namespace tg::ctl {
namespace {

using Settings = std::map<std::string, std::string>;

std::string value_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  const schema::Option<schema::JobSpec>* const row = schema::find_option(schema::job_options(), key);
  std::string value = found != settings.end() ? found->second : row != nullptr ? row->get(schema::JobSpec()) : "";
  return value.empty() ? "none" : value;
}

// Known keys in the order of the reference, then those that this tgctl does not know.
std::vector<std::string> differing_keys(const std::vector<Settings>& runs) {
  std::set<std::string> known;
  std::vector<std::string> keys;
  const auto differs = [&](const std::string& key) {
    return std::ranges::any_of(runs, [&](const Settings& one) { return value_of(one, key) != value_of(runs[0], key); });
  };
  for (const auto& row : schema::job_options()) {
    known.insert(row.name);
    if (differs(row.name)) keys.push_back(row.name);
  }
  for (const Settings& run : runs)
    for (const auto& [key, value] : run)
      if (known.insert(key).second && differs(key)) keys.push_back(key);
  return keys;
}

std::vector<Settings> settings_of_all(const std::vector<schema::RunStatus>& runs) {
  std::vector<Settings> all;
  for (const schema::RunStatus& run : runs) all.push_back(settings_of(run));
  return all;
}

std::string duration(const schema::RunStatus& run) {
  if (!schema::has_ended(run.state) || run.started_ms <= 0) return "-";
  constexpr double kMsPerSecond = 1000;
  return format_span(static_cast<double>(run.since_ms - run.started_ms) / kMsPerSecond);
}

struct ResultRow {
  const char* name;
  std::string (*text)(const schema::RunStatus&);
};
constexpr ResultRow kResults[] = {
    {"data", [](const schema::RunStatus& run) { return run.data_read; }},
    {"members", [](const schema::RunStatus& run) { return std::to_string(run.members.size()); }},
    {"state", [](const schema::RunStatus& run) { return std::string(to_word(run.state)); }},
    {"step", [](const schema::RunStatus& run) { return std::to_string(run.step); }},
    {"duration", duration},
    {"loss", [](const schema::RunStatus& run) { return format_fixed(run.loss, 4); }},
    {"accuracy",
     [](const schema::RunStatus& run) { return run.evaluated ? format_percent(run.evaluation_accuracy, 2) : "-"; }},
    {"best accuracy",
     [](const schema::RunStatus& run) { return run.best_step > 0 ? format_percent(run.best_accuracy, 2) : "-"; }},
    {"evaluation loss",
     [](const schema::RunStatus& run) { return run.evaluated ? format_fixed(run.evaluation_loss, 4) : "-"; }},
    {"samples/s", [](const schema::RunStatus& run) { return format_fixed(run.samples_per_second, 0); }},
    {"bits/parameter", [](const schema::RunStatus& run) { return format_fixed(run.sent_bits_per_parameter, 3); }},
};

}  // namespace

std::map<std::string, std::string> settings_of(const schema::RunStatus& run) {
  std::map<std::string, std::string> settings;
  for (const std::string& line : lines_of(run.settings))
    if (const std::size_t at = line.find(" = "); at != std::string::npos)
      settings[line.substr(0, at)] = line.substr(at + std::string_view(" = ").size());
  return settings;
}

std::vector<std::string> differing_settings(const std::vector<schema::RunStatus>& runs) {
  const std::vector<Settings> settings = settings_of_all(runs);
  std::vector<std::string> texts(runs.size());
  if (runs.empty()) return texts;
  for (const std::string& key : differing_keys(settings))
    for (std::size_t i = 0; i < runs.size(); ++i)
      texts[i] += (texts[i].empty() ? "" : " ") + key + "=" + value_of(settings[i], key);
  return texts;
}

Rows comparison_rows(const std::vector<schema::RunStatus>& runs) {
  const std::vector<Settings> settings = settings_of_all(runs);
  Rows rows{{"RUN"}};
  for (const schema::RunStatus& run : runs) rows[0].push_back(run.id);
  for (const std::string& key : differing_keys(settings)) {
    Rows::value_type& row = rows.emplace_back(Rows::value_type{key});
    for (const Settings& one : settings) row.push_back(value_of(one, key));
  }
  for (const ResultRow& result : kResults) {
    Rows::value_type row{result.name};
    for (const schema::RunStatus& run : runs) row.push_back(result.text(run));
    if (std::any_of(row.begin() + 1, row.end(), [&](const std::string& text) { return text != row[1]; }))
      rows.push_back(std::move(row));
  }
  return rows;
}

std::string format_comparison(const std::vector<schema::RunStatus>& runs, std::size_t columns) {
  const Rows rows = comparison_rows(runs);
  if (rows.size() == 1) return "no differences\n";
  return format_table(rows, {}, columns);
}

}  // namespace tg::ctl
