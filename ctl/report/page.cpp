#include "ctl/report/page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ctl/format/comparison.h"
#include "ctl/format/progress.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "ctl/report/chart.h"
#include "ctl/report/markup.h"
#include "ctl/report/sheet.h"
#include "kernels/base/hex.h"
#include "schema/choices.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;

std::string tile(const std::string& value, const std::string& name) {
  return "<div class=\"tile\">" + element("b", value) + element("span", name, "soft") + "</div>\n";
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

// Whether model.safetensors is from the best evaluation.
bool has_best_model(const ReportData& data) {
  const auto spec = data.record.find("spec");
  return spec != data.record.end() && spec->is_object() && texts(*spec, "keep") == "best" && data.run.best_step > 0;
}

std::string summary(const ReportData& data) {
  const schema::RunStatus& run = data.run;
  const bool bad = run.state == schema::RunState::kFailed || run.state == schema::RunState::kInterrupted;
  std::string text = element("h1", run.id) + "\n<p>" + element("b", to_word(run.state), bad ? "bad" : "good") + " " +
                     escaped(run.reason) + " " +
                     element("span",
                             run.model + " on " + run.data + ", " + run.gradients + " gradients, seed " +
                                 std::to_string(data.record.value("seed", std::uint64_t{0})),
                             "soft") +
                     "</p>\n" +
                     (run.departed.empty()
                          ? ""
                          : element("p", members_text(run) + " at the end; those that left are listed below", "bad")) +
                     "<div class=\"tiles\">\n";
  if (run.evaluated)
    text += tile(format_percent(run.evaluation_accuracy, 2), "accuracy at step " + std::to_string(run.evaluation_step));
  if (has_best_model(data))
    text += tile(format_percent(run.best_accuracy, 2), "accuracy at step " + std::to_string(run.best_step) +
                                                           ", the best; model.safetensors is from this step");
  if (run.step > 0) text += tile(format_fixed(run.loss, 4), "loss of the last step");
  text += tile(std::to_string(run.step) + "/" + std::to_string(run.steps), "steps");
  const std::optional<double> left = seconds_left(run, data.made_ms);
  text += tile(took(run, data.made_ms), left ? "so far, about " + format_span(*left) + " left" : "from start to end");
  if (run.step == 0) return text + "</div>\n";
  text += tile(format_fixed(run.samples_per_second, 0), "samples per second, over the last steps");
  if (run.code_bits_per_parameter > 0)
    text += tile(format_fixed(run.code_bits_per_parameter, 2), "bits per parameter in the codes; " +
                                                                   format_fixed(run.sent_bits_per_parameter, 2) +
                                                                   " sent in all, float32: 32");
  return text + "</div>\n";
}

std::string data_section(const schema::RunStatus& run) {
  if (run.data_read.empty()) return "";
  std::string text = "<h2>Data</h2>\n" + element("p", run.data_read) + "\n";
  if (run.data_warnings.empty()) return text;
  text += "<ul>\n";
  for (const std::string& line : lines_of(run.data_warnings)) text += element("li", line, "bad") + "\n";
  return text + "</ul>\n";
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
  text += figure({"Loss", {&curves.loss}, {}, marks, true, true});
  text += figure({"Accuracy on the test set", {&curves.accuracy}, {}, marks, true, false, true});
  text += figure({"Loss on the test set", {&curves.evaluation_loss}, {}, marks, true, true});
  text += figure({"Learning rate", {&curves.learning_rate}, {}, marks});
  text += figure({"Share of zero codes", {&curves.zeros}, {}, marks, true, false, true});
  text += figure({"Bits per parameter and step",
                  {&curves.code_bits, &curves.sent_bits},
                  {"codes", "all that a member sent"},
                  marks});
  text += figure({"Samples per second, all members", {&curves.samples_per_second}, {}, marks});
  return text + "</div>\n<p class=\"soft\">Bands: minimum to maximum of neighbouring steps." +
         (marks.empty() ? "" : " Dashed: view changes.") + "</p>\n";
}

// The entropy of a code that is 0 with this probability, and -1 or 1 with equal probabilities.
double entropy_bits(double zero) {
  const auto part = [](double share) { return share > 0 ? -share * std::log2(share) : 0; };
  return part(zero) + part(1 - zero) + (1 - zero);
}

std::string layers(const ReportData& data) {
  double min = 1;
  std::string rows;
  for (const Curves::Layer& layer : data.curves.layers)
    for (const Series::Point& point : layer.zeros.points()) min = std::min(min, std::clamp(point.mean, 0.0, 1.0));
  if (min == 1) return "";
  for (const Curves::Layer& layer : data.curves.layers) {
    if (layer.zeros.empty()) continue;
    const double zeros = std::clamp(layer.zeros.last(), 0.0, 1.0);
    rows += "<tr>" + element("td", layer.name) + "<td>" + sparkline(layer.zeros, min, 1) + "</td>" +
            element("td", format_percent(zeros, 1), "number") + element("td", format_fixed(entropy_bits(zeros), 2)) +
            "</tr>\n";
  }
  return "<h2>Zero codes by layer</h2>\n" +
         element("p",
                 data.node + "'s codes; each curve runs from " + format_percent(min, 0) +
                     " (bottom) to 100 % (top). Bits: the minimum for entropy coding; this run's codes were " +
                     (data.run.coding == to_word(schema::Coding::kEntropy) ? "entropy-coded." : "sent raw."),
                 "soft") +
         "<div class=\"scroll\"><table>\n" +
         row({"parameters", "share of zeros over the steps", "at the end", "bits per code"}, "th") + rows +
         "</table></div>\n";
}

// A bar for each member, from its last status.
std::string time_of_members(const schema::RunStatus& run) {
  constexpr const char* kColours[] = {"bar0", "bar1", "bar2"};
  std::string rows;
  for (const schema::MemberStatus& member : run.members) {
    if (member.data_wait_share + member.waiting_share <= 0) continue;
    const double samples = std::min(member.data_wait_share, 1.0), others = std::min(member.waiting_share, 1 - samples);
    const double computes = 1 - samples - others;
    rows += "<tr>" + element("td", member.node) + "<td class=\"bar\">" +
            stacked_bar(member.node, {{kColours[0], computes}, {kColours[1], samples}, {kColours[2], others}}) +
            "</td>";
    for (const double share : {computes, samples, others}) rows += element("td", format_percent(share, 1), "number");
    rows += "</tr>\n";
  }
  if (rows.empty()) return "";
  std::string heading = "<tr>" + element("th", "member") + "<th></th>";
  constexpr const char* kParts[] = {"computes, and exchanges meanwhile", "waits for data", "waits for other members"};
  for (std::size_t i = 0; i < std::size(kParts); ++i)
    heading += std::string("<th>") + swatch(kColours[i]) + kParts[i] + "</th>";
  return element("h3", "All members, over their last steps") + "\n<div class=\"scroll\"><table>\n" + heading +
         "</tr>\n" + rows + "</table></div>\n";
}

// One bar: computing, waiting for data, and waiting for each other member.
std::string time_of_a_step(const ReportData& data) {
  const Curves& curves = data.curves;
  if (curves.steps == 0 || curves.seconds <= 0) return "";
  double waited = 0;
  for (const auto& [node, seconds] : curves.waits) waited += seconds;
  std::vector<BarPart> parts;
  std::string rows = row({data.node, "per step", "share"}, "th");
  const auto add = [&](const std::string& name, double seconds) {
    constexpr const char* kColours[] = {"bar0", "bar1", "bar2", "bar3", "bar4", "bar5"};
    constexpr std::size_t kOthers = 2, kColoursOfOthers = std::size(kColours) - kOthers;
    const std::size_t i = parts.size();
    parts.push_back({kColours[i < kOthers ? i : kOthers + (i - kOthers) % kColoursOfOthers], seconds / curves.seconds});
    rows += "<tr><td>" + swatch(parts[i].colour) + escaped(name) + "</td>" +
            element("td", format_seconds(seconds / static_cast<double>(curves.steps))) +
            element("td", format_percent(parts[i].share, 1), "number") + "</tr>\n";
  };
  add("computes, and exchanges meanwhile", std::max(curves.seconds - curves.data_wait - waited, 0.0));
  add("waits for data", curves.data_wait);
  for (const auto& [node, seconds] : curves.waits)
    add("waits for " + node + (node == data.node ? ", in steps that another member recorded" : ""), seconds);
  return "<h2>Where a step's time goes</h2>\n" + time_of_members(data.run) +
         element("h3", data.node + ", over all " + std::to_string(curves.steps) + " steps that it took part in") +
         "\n" + stacked_bar("Where a step's time goes", parts) + "\n<table>\n" + rows + "</table>\n";
}

// Whether the members that report a state have the same one.
std::string agreement(const schema::RunStatus& run) {
  std::set<std::uint64_t> digests;
  std::size_t told = 0;
  for (const schema::MemberStatus& member : run.members) {
    if (member.digest == 0) continue;
    digests.insert(member.digest);
    ++told;
  }
  if (told < 2 || !schema::has_ended(run.state)) return "";
  return digests.size() == 1 ? "All " + std::to_string(told) + " members ended with the same state."
                             : "The members did not end with the same state.";
}

std::string members(const schema::RunStatus& run) {
  Rows rows;
  for (const schema::MemberStatus& member : run.members)
    rows.push_back({member.node, to_word(member.state), std::to_string(member.step),
                    member.samples > 0 ? std::to_string(member.samples) : "-", format_percent(member.wait_share, 1),
                    format_percent(member.data_wait_share, 1), member.digest == 0 ? "-" : hex_digest(member.digest)});
  for (const schema::Departure& one : run.departed)
    rows.push_back({one.node, "left: " + one.why, std::to_string(one.step), "-", "-", "-", "-"});
  return "<h2>Members</h2>\n" + element("p", agreement(run)) +
         table({"member", "state", "step", "samples per step", "recent wait of others for it", "recent wait for data",
                "state digest"},
               rows);
}

std::optional<std::uint64_t> number_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// The lines of views.jsonl, and the view that goes on, which has none yet. A member that was PAUSED or shut down keeps
// a state one step beyond the last one that it knew to be confirmed: where a later view began with that, the line's
// view trained it.
std::vector<Json> all_views(const ReportData& data) {
  std::vector<Json> all = data.views;
  const auto name_of = [](const Json& view) {
    return std::pair(number_in(view, "lineage").value_or(0), number_in(view, "view").value_or(0));
  };
  if (number_in(data.record, "view") &&
      std::ranges::none_of(all, [&](const Json& one) { return name_of(one) == name_of(data.record); })) {
    all.push_back(data.record);
    all.back()["to_step"] = data.run.step;
    all.back()["ended"] = to_word(data.run.state);
  }
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> begun_with;  // the newest state, by its view
  for (const Json& one : all) {
    const Json from = one.value("from", Json());
    std::uint64_t& step = begun_with[name_of(from)];
    step = std::max(step, number_in(from, "step").value_or(0));
  }
  for (Json& one : all)
    if (const auto to = number_in(one, "to_step"); to && begun_with.contains(name_of(one)))
      one["to_step"] = std::max(*to, begun_with[name_of(one)]);
  return all;
}

std::string views(const ReportData& data) {
  const std::vector<Json> all = all_views(data);
  if (all.empty()) return "";
  Rows rows;
  for (const Json& view : all) {
    std::string names;
    if (view.contains("members") && view["members"].is_array())
      for (const Json& name : view["members"])
        if (name.is_string()) names += (names.empty() ? "" : ", ") + name.get<std::string>();
    const auto shown = [](std::optional<std::uint64_t> number) { return number ? std::to_string(*number) : "-"; };
    std::optional<std::uint64_t> first = number_in(view.value("from", Json()), "step"),
                                 last = number_in(view, "to_step");
    if (first) ++*first;
    if (first && last && *first > *last) first = last = std::nullopt;  // it made no step
    const auto ended = view.find("ended");
    rows.push_back({shown(number_in(view, "lineage")), shown(number_in(view, "view")), shown(first), shown(last), names,
                    ended != view.end() && ended->is_string() ? ended->get<std::string>() : "-"});
  }
  return "<h2>Views</h2>\n" + table({"started or resumed", "view", "from step", "to step", "members", "ended"}, rows);
}

std::string job(const ReportData& data) {
  const auto spec = data.record.find("spec");
  if (spec == data.record.end() || !spec->is_object()) return "";
  Rows set, all;
  for (const auto& [key, value] : settings_of(data.run)) set.push_back({key, value});
  for (const auto& [key, value] : spec->items())
    all.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  return "<h2>Job: keys that differ from the defaults</h2>\n" +
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
  rows.push_back({"initial digest", hex_digest(data.run.initial_digest)});
  rows.push_back({"digest at step " + std::to_string(data.run.digest_step), hex_digest(data.run.digest)});
  rows.push_back({"parameters", std::to_string(data.run.parameters)});
  rows.push_back({"exchange, coding", data.run.exchange + ", " + data.run.coding});
  return "<h2>Nodes and builds</h2>\n" + table({}, rows);
}

}  // namespace

std::string report_page(const ReportData& data) {
  return begin_page(data.run.id, data.refresh_seconds) + summary(data) + data_section(data.run) + charts(data) +
         layers(data) + data.misclassifications + time_of_a_step(data) + members(data.run) + views(data) + job(data) +
         origin(data) + kEndOfPage;
}

}  // namespace tg::ctl
