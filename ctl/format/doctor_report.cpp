#include "ctl/format/doctor_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ctl/format/table.h"
#include "kernels/base/joined.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;
using schema::Diagnosis;
using schema::Finding;

std::size_t count_of(const Diagnosis& diagnosis, schema::Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                                [&](const Finding& one) { return one.verdict == verdict; }));
}

std::string matrix(const Diagnosis& diagnosis) {
  const std::size_t nodes = diagnosis.nodes.size();
  Rows rows{{"FROM \\ TO"}};
  for (const std::string& name : diagnosis.nodes) rows[0].push_back(name);
  for (std::size_t from = 0; from < nodes; ++from) {
    rows.push_back({diagnosis.nodes[from]});
    for (std::size_t to = 0; to < nodes; ++to) rows.back().push_back(to_word(diagnosis.reach[from * nodes + to]));
  }
  return format_table(rows);
}

// The meaning of those words of the matrix that are in it.
std::string legend(const Diagnosis& diagnosis) {
  using enum schema::LinkResult;
  constexpr std::pair<schema::LinkResult, const char*> kMeanings[] = {
      {kMesh, "its mesh port cannot be reached"}, {kControl, "its control port cannot be reached"},
      {kBoth, "neither port can be reached"},     {kDown, "no node reaches it"},
      {kRefused, "they refuse each other"},       {kUnknown, "that node was not examined"}};
  std::vector<std::string> parts;
  for (const auto& [result, meaning] : kMeanings)
    if (std::ranges::find(diagnosis.reach, result) != diagnosis.reach.end())
      parts.push_back(to_word(result) + std::string(": ") + meaning);
  return parts.empty() ? "" : format_text(joined(parts, "; "));
}

std::string summary(const Diagnosis& diagnosis) {
  const std::size_t failed = count_of(diagnosis, schema::Verdict::kFail) + diagnosis.left_out,
                    skipped = count_of(diagnosis, schema::Verdict::kSkipped);
  std::string text = "all checks passed";
  if (failed + skipped > 0) text = std::to_string(failed) + " failed, " + std::to_string(skipped) + " skipped";
  if (diagnosis.left_out > 0) text += " (" + std::to_string(diagnosis.left_out) + " not shown)";
  return format_text(text + ", via " + diagnosis.node);
}

}  // namespace

bool all_pass(const Diagnosis& diagnosis) {
  return diagnosis.left_out == 0 && count_of(diagnosis, schema::Verdict::kFail) == 0;
}

std::string format_diagnosis(const Diagnosis& diagnosis) {
  Rows rows{{"CHECK", "VERDICT", "DETAIL"}};
  std::vector<std::string> notes{""};
  for (const Finding& one : diagnosis.findings) {
    // A link's sentence names both of its ends.
    const std::string node = one.node.empty() || !one.peer.empty() ? "" : one.node + ": ";
    rows.push_back({to_word(one.check), to_word(one.verdict), node + one.seen});
    notes.push_back(one.fix.empty() ? "" : "fix: " + one.fix);
  }
  return format_table(rows, notes) + "\n" + matrix(diagnosis) + legend(diagnosis) + "\n" + summary(diagnosis);
}

std::string format_diagnosis_json(const Diagnosis& diagnosis) {
  const std::size_t nodes = diagnosis.nodes.size();
  Json findings = Json::array(), links = Json::array();
  for (const Finding& one : diagnosis.findings) findings.push_back(to_json(one, schema::JsonView::kShown));
  for (std::size_t from = 0; from < nodes; ++from)
    for (std::size_t to = 0; to < nodes; ++to) {
      if (from == to) continue;
      const std::size_t at = from * nodes + to;
      const float mbps = diagnosis.mbps[at];
      links.push_back({{"from", diagnosis.nodes[from]},
                       {"to", diagnosis.nodes[to]},
                       {"reach", to_word(diagnosis.reach[at])},
                       {"payload_mbps", mbps > 0 ? Json(mbps) : Json(nullptr)}});
    }
  const Json json = {{"schema_version", kDoctorJsonVersion},
                     {"node", diagnosis.node},
                     {"passed", all_pass(diagnosis)},
                     {"nodes", diagnosis.nodes},
                     {"findings", std::move(findings)},
                     {"findings_left_out", diagnosis.left_out},
                     {"links", std::move(links)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string examination_outlook(std::size_t nodes, std::uint64_t seconds) {
  const int total_ms = schema::examine_ms(nodes, seconds);
  const std::string time = std::to_string((total_ms + 999) / 1000) + " s";
  const bool measures = schema::examine_rounds_ms(nodes, seconds) > 0;
  return "checking " + std::to_string(nodes) + (nodes == 1 ? " node (" : " nodes (") +
         (measures ? "about " + time + "; --no-bandwidth is faster)" : "up to " + time + ")");
}

}  // namespace tg::ctl
