#include "ctl/report/page.h"

#include <algorithm>
#include <set>

#include "ctl/format/comparison.h"
#include "ctl/format/progress.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "ctl/report/chart.h"
#include "ctl/report/markup.h"
#include "ctl/report/sheet.h"
#include "kernels/base/hex.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;

std::string tile(const std::string& value, const std::string& name) {
  return "<div class=\"tile\">" + element("b", value) + element("span", name, "soft") + "</div>\n";
}

std::string row(const std::vector<std::string>& cells, const char* cell = "td") {
  std::string text = "<tr>";
  for (const std::string& one : cells) text += element(cell, one);
  return text + "</tr>\n";
}

std::string table(const std::vector<std::string>& heading, const Rows& rows) {
  std::string text = "<div class=\"scroll\"><table>\n" + (heading.empty() ? std::string() : row(heading, "th"));
  for (const auto& cells : rows) text += row(cells);
  return text + "</table></div>\n";
}

std::string took(const schema::RunStatus& run, std::int64_t now_ms) {
  const std::int64_t end_ms = schema::has_ended(run.state) ? run.since_ms : now_ms;
  constexpr double kMsPerSecond = 1000;
  return run.started_ms > 0 ? format_span(static_cast<double>(end_ms - run.started_ms) / kMsPerSecond) : "-";
}

std::string texts(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// Whether model.safetensors is of the best evaluation.
bool has_best_model(const ReportData& data) {
  const auto spec = data.record.find("spec");
  return spec != data.record.end() && spec->is_object() && texts(*spec, "keep") == "best" && data.run.best_step > 0;
}

std::string summary(const ReportData& data) {
  const schema::RunStatus& run = data.run;
  const bool bad = run.state == schema::RunState::kFailed || run.state == schema::RunState::kInterrupted;
  std::string text =
      element("h1", run.id) + "\n<p>" + element("b", to_word(run.state), bad ? "bad" : "good") + " " +
      escaped(run.reason) + " " +
      element("span",
              run.model + " on " + run.data + ", " + run.gradients + " gradients, seed " +
                  std::to_string(data.record.value("seed", std::uint64_t{0})),
              "soft") +
      "</p>\n" + (run.left.empty() ? "" : element("p", members_text(run) + " at the end: see who left below", "bad")) +
      "<div class=\"tiles\">\n";
  if (run.evaluated)
    text += tile(format_percent(run.evaluation_accuracy, 2), "accuracy at step " + std::to_string(run.evaluation_step));
  if (has_best_model(data))
    text += tile(format_percent(run.best_accuracy, 2),
                 "accuracy at step " + std::to_string(run.best_step) + ", the best, of which model.safetensors is");
  if (run.step > 0) text += tile(format_fixed(run.loss, 4), "loss of the last step");
  text += tile(std::to_string(run.step) + "/" + std::to_string(run.steps), "steps");
  const std::optional<double> left = seconds_left(run, data.made_ms);
  text += tile(took(run, data.made_ms), left ? "so far, about " + format_span(*left) + " left" : "from start to end");
  if (run.step == 0) return text + "</div>\n";
  text += tile(format_fixed(run.samples_per_second, 0), "samples a second");
  if (run.code_bits_per_parameter > 0)
    text += tile(format_fixed(run.code_bits_per_parameter, 2), "bits a parameter in the codes, " +
                                                                   format_fixed(run.sent_bits_per_parameter, 2) +
                                                                   " with all that a member sent; a float32 has 32");
  return text + "</div>\n";
}

std::string what_was_read(const schema::RunStatus& run) {
  if (run.data_read.empty()) return "";
  std::string text = "<h2>What was read</h2>\n" + element("p", run.data_read) + "\n";
  if (run.data_warnings.empty()) return text;
  text += "<ul>\n";
  for (const std::string& line : lines_of(run.data_warnings)) text += element("li", line, "bad") + "\n";
  return text + "</ul>\n";
}

std::string figure(const Chart& chart) {
  if (std::ranges::all_of(chart.lines, [](const Series* series) { return series->empty(); })) return "";
  std::string names;
  for (std::size_t i = 0; i < chart.names.size(); ++i)
    names += element("span", chart.names[i], i == 0 ? "key1" : "key2") + " ";
  return "<figure>" + element("h3", chart.title) + names + draw(chart) + "</figure>\n";
}

std::string charts(const ReportData& data) {
  const Curves& curves = data.curves;
  if (curves.steps == 0) return "";
  std::vector<std::uint64_t> marks;
  for (const Json& view : data.views)
    if (view.contains("from") && view["from"].is_object())
      marks.push_back(view["from"].value("step", std::uint64_t{0}));
  std::erase(marks, 0u);
  if (data.run.view > 1) marks.push_back(data.run.view_step);
  std::string text = "<h2>Over the steps</h2>\n<div class=\"charts\">\n";
  text += figure({"Loss", {&curves.loss}, {}, marks, true});
  text += figure({"Accuracy on the test set", {&curves.accuracy}, {}, marks, false, true});
  text += figure({"Loss on the test set", {&curves.evaluation_loss}, {}, marks, true});
  text += figure({"Learning rate", {&curves.learning_rate}, {}, marks});
  text += figure({"Share of zero codes", {&curves.zeros}, {}, marks, false, true});
  text += figure({"Bits a parameter and step",
                  {&curves.code_bits, &curves.sent_bits},
                  {"codes", "all that a member sent"},
                  marks});
  text += figure({"Samples a second, all members", {&curves.samples_per_second}, {}, marks});
  return text + "</div>\n<p class=\"soft\">Bands: from the least to the most of neighbouring steps." +
         (marks.empty() ? "" : " Dashed: the members changed.") + "</p>\n";
}

// One bar: computing, samples, and the wait for each other member.
std::string time_of_a_step(const ReportData& data) {
  const Curves& curves = data.curves;
  if (curves.steps == 0 || curves.seconds <= 0) return "";
  double waited = 0;
  for (const auto& [node, seconds] : curves.waits) waited += seconds;
  struct Part {
    std::string name;
    double seconds;
  };
  std::vector<Part> parts{
      {"computes, and exchanges beside it", std::max(curves.seconds - curves.data_wait - waited, 0.0)},
      {"waits for samples", curves.data_wait}};
  for (const auto& [node, seconds] : curves.waits) parts.push_back({"waits for " + node, seconds});
  constexpr double kBarWidth = 600, kBarHeight = 24;
  std::string rows = row({data.node, "a step", "share"}, "th");
  std::string bar = "<svg viewBox=\"0 0 600 24\" role=\"img\"><title>Where a step's time goes</title>\n";
  double x = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double width = kBarWidth * parts[i].seconds / curves.seconds;
    const std::string colour = "bar" + std::to_string(i < 2 ? i : 2 + i % 2);
    bar += "<rect x=\"" + format_fixed(x, 1) + "\" y=\"0\" width=\"" + format_fixed(width, 1) + "\" height=\"" +
           format_fixed(kBarHeight, 0) + "\" class=\"" + colour + "\"/>\n";
    x += width;
    rows += "<tr><td><svg viewBox=\"0 0 10 10\" class=\"swatch\"><rect width=\"10\" height=\"10\" class=\"" + colour +
            "\"/></svg> " + escaped(parts[i].name) + "</td>" +
            element("td", format_seconds(parts[i].seconds / static_cast<double>(curves.steps))) +
            element("td", format_percent(parts[i].seconds / curves.seconds, 1)) + "</tr>\n";
  }
  return "<h2>Where a step's time goes</h2>\n" +
         element("p", "As " + data.node + " measured it, over " + std::to_string(curves.steps) + " steps.", "soft") +
         bar + "</svg>\n<table>\n" + rows + "</table>\n";
}

// Whether those that have told their state have the same one.
std::string agreement(const schema::RunStatus& run) {
  std::set<std::uint64_t> digests;
  std::size_t told = 0;
  for (const schema::MemberStatus& member : run.members) {
    if (member.digest == 0) continue;
    digests.insert(member.digest);
    ++told;
  }
  if (told < 2 || !schema::has_ended(run.state)) return "";
  return digests.size() == 1 ? "All " + std::to_string(told) + " ended with the same state."
                             : "They did not end with the same state.";
}

std::string members(const schema::RunStatus& run) {
  Rows rows;
  for (const schema::MemberStatus& member : run.members)
    rows.push_back({member.node, to_word(member.state), std::to_string(member.step),
                    member.samples > 0 ? std::to_string(member.samples) : "-", format_percent(member.wait_share, 1),
                    format_percent(member.data_wait_share, 1), member.digest == 0 ? "-" : hex_digest(member.digest)});
  for (const schema::Departure& one : run.left)
    rows.push_back({one.node, "left: " + one.why, std::to_string(one.step), "-", "-", "-", "-"});
  return "<h2>Members</h2>\n" + element("p", agreement(run)) +
         table({"member", "state", "step", "samples a step", "the others waited for it", "waited for samples",
                "digest of its state"},
               rows);
}

std::string views(const ReportData& data) {
  if (data.views.empty()) return "";
  Rows rows;
  for (const Json& view : data.views) {
    std::string names;
    if (view.contains("members") && view["members"].is_array())
      for (const Json& name : view["members"])
        if (name.is_string()) names += (names.empty() ? "" : ", ") + name.get<std::string>();
    const auto number = [&](const Json& from, const char* key) {
      return from.is_object() && from.contains(key) && from[key].is_number_unsigned() ? from[key].dump() : "-";
    };
    const auto first_step = [&](const Json& from) {
      const std::string before = number(from, "step");
      return before == "-" ? before : std::to_string(from["step"].get<std::uint64_t>() + 1);
    };
    const auto ended = view.find("ended");
    rows.push_back({number(view, "lineage"), number(view, "view"), first_step(view.value("from", Json())),
                    number(view, "to_step"), names,
                    ended != view.end() && ended->is_string() ? ended->get<std::string>() : "-"});
  }
  return "<h2>Who trained which steps</h2>\n" +
         table({"started or resumed", "view", "from step", "to step", "members", "ended"}, rows);
}

std::string job(const ReportData& data) {
  const auto spec = data.record.find("spec");
  if (spec == data.record.end() || !spec->is_object()) return "";
  Rows set, all;
  for (const auto& [key, value] : settings_of(data.run)) set.push_back({key, value});
  for (const auto& [key, value] : spec->items())
    all.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  return "<h2>The job: keys that are not the defaults</h2>\n" +
         (set.empty() ? "<p>Every key has its default.</p>\n" : table({"key", "value"}, set)) +
         "<details><summary>All keys</summary>\n" + table({"key", "value"}, all) + "</details>\n";
}

std::string origin(const ReportData& data) {
  Rows rows{{"started", format_second(data.run.started_ms)},
            {schema::has_ended(data.run.state) ? "ended" : "page made",
             format_second(schema::has_ended(data.run.state) ? data.run.since_ms : data.made_ms)},
            {"tgd", texts(data.record, "build")}};
  const Json own = data.record.value("own", Json::object());
  if (own.is_object())
    for (const char* key : {"engine_build", "device", "math", "threads", "kernels"})
      if (std::string text = texts(own, key); !text.empty()) rows.push_back({data.node + ": " + key, text});
  const Json builds = data.record.value("builds", Json::object());
  if (builds.is_object())
    for (const auto& [node, build] : builds.items())
      if (node != data.node && build.is_string()) rows.push_back({node + ": engine_build", build.get<std::string>()});
  const Json hashes = data.record.value("hashes", Json::object());
  if (hashes.is_object())
    for (const auto& [name, hash] : hashes.items())
      rows.push_back({"hash of the " + name, hash.is_string() ? hash.get<std::string>() : ""});
  rows.push_back({"digest at the beginning", hex_digest(data.run.initial_digest)});
  rows.push_back({"digest at step " + std::to_string(data.run.digest_step), hex_digest(data.run.digest)});
  rows.push_back({"parameters", std::to_string(data.run.parameters)});
  rows.push_back({"exchange, coding", data.run.exchange + ", " + data.run.coding});
  return "<h2>Nodes and builds</h2>\n" + table({}, rows);
}

}  // namespace

std::string report_page(const ReportData& data) {
  return begin_page(data.run.id, data.again_seconds) + summary(data) + what_was_read(data.run) + charts(data) +
         time_of_a_step(data) + members(data.run) + views(data) + job(data) + origin(data) + kEndOfPage;
}

}  // namespace tg::ctl
