#include "ctl/format/doctor_report.h"

#include <algorithm>

#include "ctl/format/table.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;
using schema::Cell;
using schema::Diagnosis;
using schema::Finding;

std::size_t count_of(const Diagnosis& diagnosis, schema::Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                                [&](const Finding& one) { return one.verdict == verdict; }));
}

// A link's text names both of its ends.
std::string what(const Finding& finding) {
  return finding.node.empty() || !finding.peer.empty() ? finding.seen : finding.node + ": " + finding.seen;
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

// What the words of the matrix mean, of those that are there.
std::string legend(const Diagnosis& diagnosis) {
  const auto there = [&](Cell cell) {
    return std::find(diagnosis.reach.begin(), diagnosis.reach.end(), cell) != diagnosis.reach.end();
  };
  std::string text;
  const auto add = [&](Cell cell, const char* meaning) {
    if (there(cell)) text += (text.empty() ? "" : "; ") + std::string(to_word(cell)) + ": " + meaning;
  };
  add(Cell::kMesh, "its mesh port cannot be reached");
  add(Cell::kControl, "its control port cannot be reached");
  add(Cell::kBoth, "neither port can be reached");
  add(Cell::kDown, "nobody reaches it");
  add(Cell::kRefused, "reached, but they refuse each other");
  add(Cell::kUnknown, "that node was not examined");
  return text.empty() ? "" : format_text(text);
}

std::string summary(const Diagnosis& diagnosis) {
  const std::size_t fails = count_of(diagnosis, schema::Verdict::kFail) + diagnosis.left_out,
                    warnings = count_of(diagnosis, schema::Verdict::kWarn),
                    skipped = count_of(diagnosis, schema::Verdict::kSkipped);
  std::string text = std::to_string(fails) + " failed, " + std::to_string(warnings) + " warned, " +
                     std::to_string(skipped) + " skipped";
  if (fails + warnings + skipped == 0) text = "all checks passed";
  if (diagnosis.left_out > 0) text += "; " + std::to_string(diagnosis.left_out) + " more findings are not shown";
  return format_text(text + ", asked at " + diagnosis.node);
}

}  // namespace

bool all_pass(const Diagnosis& diagnosis) {
  return diagnosis.left_out == 0 && count_of(diagnosis, schema::Verdict::kFail) == 0 &&
         count_of(diagnosis, schema::Verdict::kWarn) == 0;
}

std::string format_diagnosis(const Diagnosis& diagnosis) {
  Rows rows{{"CHECK", "VERDICT", "WHAT WAS SEEN"}};
  std::vector<std::string> notes{""};
  for (const Finding& one : diagnosis.findings) {
    rows.push_back({to_word(one.check), to_word(one.verdict), what(one)});
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
      const std::uint32_t micros = diagnosis.round_trip_micros[at];
      links.push_back({{"from", diagnosis.nodes[from]},
                       {"to", diagnosis.nodes[to]},
                       {"reach", to_word(diagnosis.reach[at])},
                       {"payload_mbps", mbps > 0 ? Json(mbps) : Json(nullptr)},
                       {"round_trip_seconds", micros > 0 ? Json(micros * 1e-6) : Json(nullptr)}});
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
  const int rounds_ms = schema::examine_rounds_ms(nodes, seconds), checks_ms = schema::examine_checks_ms(nodes);
  std::string text = "examines " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes");
  if (rounds_ms == 0) return text + ", which takes up to " + std::to_string((checks_ms + 999) / 1000) + " s";
  const std::size_t rounds = schema::examine_rounds(nodes);
  return text + ", which takes about " + std::to_string((checks_ms + rounds_ms + 999) / 1000) +
         " s: " + std::to_string(rounds) + (rounds == 1 ? " round" : " rounds") + " of " + std::to_string(seconds) +
         " s fill each link once (--no-bandwidth leaves them out)";
}

}  // namespace tg::ctl
