#include "ctl/watch/screen.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ctl/format/progress.h"
#include "ctl/format/status_text.h"
#include "ctl/watch/layout.h"
#include "ctl/watch/plot.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using Sheet = std::vector<ScreenLine>;

constexpr std::size_t kRoomyLines = 24;    // from this height on an empty line separates the parts
constexpr std::size_t kMinChart = 3;       // lines
constexpr std::uint64_t kStandsMs = 2000;  // time without progress that is shown
constexpr double kFloatBits = 32;

// The chosen run's index; 0 if none is chosen, or it no longer exists.
std::size_t chosen_place(const Facts& facts, const View& view) {
  const auto& runs = facts.mesh.runs;
  const auto found = std::ranges::find(runs, view.run, &schema::RunStatus::id);
  return found == runs.end() ? 0 : static_cast<std::size_t>(found - runs.begin());
}

unsigned style_of(schema::RunState state) {
  switch (state) {
    case schema::RunState::kRunning:
      return kGood;
    case schema::RunState::kFailed:
      return kBad;
    case schema::RunState::kStopped:
    case schema::RunState::kCompleted:
      return kPlain;
    default:
      return kPoor;
  }
}

ScreenLine title_line(const std::string& text, const std::string& keys, const View& view) {
  ScreenLine line{{" " + in_columns(text, view.utf8)}};
  const std::size_t used = schema::text_width(line[0].text) + keys.size() + 1;
  if (used < view.columns) line.push_back({std::string(view.columns - used, ' ') + keys});
  return cut_line(std::move(line), view, kReverse);
}

void add_error(const Facts& facts, const View& view, Sheet& sheet) {
  if (facts.error.empty()) return;
  const std::string text = "no reply for " + format_span(static_cast<double>(facts.now_ms - facts.mesh_ms) / 1000) +
                           ", retrying: " + facts.error;
  const std::vector<std::string> lines = schema::wrap_text(in_columns(text, view.utf8), view.columns);
  const std::size_t max = view.lines < kRoomyLines ? 1 : 3;
  for (std::size_t i = 0; i < std::min(lines.size(), max); ++i) sheet.push_back({{lines[i], kBad}});
}

ScreenLine member_cells(const schema::RunStatus& run, const std::string& node) {
  const auto member = std::ranges::find(run.members, node, &schema::MemberStatus::node);
  if (member == run.members.end()) return {{run.has_left(node) ? "left" : "-", kPoor}, {"-"}, {"-"}, {"-"}};
  const bool on = !schema::has_ended(member->state) && member->is_heard();
  std::string phase = on ? std::string(to_word(member->phase)) : "-";
  if (on && member->phase_limit_ms > 0 && member->phase_ms >= kStandsMs)
    phase += " " + format_span(static_cast<double>(member->phase_ms) / 1000);
  const double share =
      run.global_batch > 0 ? static_cast<double>(member->samples) / static_cast<double>(run.global_batch) : 0;
  return {{std::string(to_word(member->state)), style_of(member->state)},
          {phase},
          {format_percent(member->wait_share, 0), member->holds_up() ? kBad : kPlain},
          {on && share > 0 ? format_fixed(run.samples_per_second * share, 0) : "-"}};
}

// Nodes with problems come first if there is no room for all.
Sheet node_lines(const Facts& facts, const View& view, std::size_t max) {
  const schema::RunStatus* const run = chosen_run(facts, view);
  std::vector<schema::NodeStatus> nodes = facts.mesh.nodes;
  const bool all = nodes.size() < max;
  const auto troubled = [](const schema::NodeStatus& node) {
    return node.state != schema::NodeState::kUp || !node.compute.problem.empty();
  };
  if (!all) std::ranges::stable_partition(nodes, troubled);
  const std::string count = all ? "" : " " + std::to_string(max - 1) + "/" + std::to_string(nodes.size());
  const bool notes = std::ranges::any_of(
      nodes, [&](const schema::NodeStatus& node) { return troubled(node) || !node.problem.empty(); });
  Sheet rows{{{"NODE" + count}, {"LINK"}}};
  if (run != nullptr) rows[0].insert(rows[0].end(), {{"STATE"}, {"PHASE"}, {"WAIT"}, {"RATE"}});
  if (notes) rows[0].push_back({"PROBLEM"});
  for (Piece& piece : rows[0]) piece.style = kFaint;
  for (const schema::NodeStatus& node : nodes) {
    const bool up = node.state == schema::NodeState::kUp;
    ScreenLine row{{node.name}, {to_word(node.state), up ? kGood : kBad}};
    if (run != nullptr) std::ranges::move(member_cells(*run, node.name), std::back_inserter(row));
    if (notes) row.push_back({node.problem.empty() ? node.compute.problem : node.problem, kPoor});
    rows.push_back(std::move(row));
  }
  rows.resize(std::min(rows.size(), max));
  return table_lines(std::move(rows), view);
}

// As many runs as fit, the chosen one among them.
Sheet run_lines(const Facts& facts, const View& view, std::size_t max) {
  const auto& runs = facts.mesh.runs;
  const std::size_t chosen = chosen_place(facts, view), shown = std::min(runs.size(), max - 1);
  const std::size_t first = std::min(chosen - std::min(chosen, shown / 2), runs.size() - shown);
  const std::string place = std::to_string(chosen + 1) + "/" + std::to_string(runs.size());
  Sheet rows{{{"RUN" + (shown < runs.size() ? " " + place : "")}, {"STATE"}, {"STEP"}, {"LEFT"}, {"VIEW"}, {"LOSS"}}};
  rows[0].push_back({"ACCURACY"});
  const bool without = std::ranges::any_of(runs, [](const auto& run) { return !run.departed.empty(); });
  if (without) rows[0].push_back({"DEPARTED"});
  for (Piece& piece : rows[0]) piece.style = kFaint;
  for (std::size_t i = first; i < first + shown; ++i) {
    const schema::RunStatus& run = runs[i];
    const std::optional<double> left = seconds_left(run, facts.now_ms);
    rows.push_back({{run.id},
                    {std::string(to_word(run.state)), style_of(run.state)},
                    {std::to_string(run.step) + "/" + std::to_string(run.steps)},
                    {left ? format_span(*left) : "-"},
                    {std::to_string(run.view)},
                    {run.step == 0 ? "-" : format_fixed(run.loss, 4)},
                    {run.evaluated ? format_percent(run.evaluation_accuracy, 2) : "-"}});
    if (without) rows.back().push_back({schema::joined(run.departed, ", ", &schema::Departure::node)});
  }
  Sheet lines = table_lines(std::move(rows), view);
  if (chosen >= first && chosen < first + shown) {
    ScreenLine& line = lines[1 + chosen - first];
    line = cut_line(std::move(line), view, kReverse);
  }
  return lines;
}

// The text has a bar with two bits per character.
std::string bits_text(const schema::RunStatus& run) {
  const double sent = run.sent_bits_per_parameter;
  if (run.step == 0 || !(sent > 0)) return "nothing sent yet; float32 has 32 bits/parameter";
  constexpr std::size_t kBar = 16;
  const auto full = static_cast<std::size_t>(std::clamp(std::round(sent / 2), 1.0, static_cast<double>(kBar)));
  const double ratio = kFloatBits / sent;
  return format_fixed(sent, 2) + " of float32's 32 bits/parameter [" + std::string(full, '#') +
         std::string(kBar - full, '.') + "]" + (ratio > 1.05 ? " " + format_fixed(ratio, 1) + " x less" : "");
}

// The most important lines come first, as there may be room for only three.
Sheet about_lines(const schema::RunStatus& run) {
  Sheet lines;
  const std::string reason = run.state == schema::RunState::kInterrupted ? interrupted_text(run)
                             : run.state == schema::RunState::kPaused    ? paused_text(run)
                                                                         : run.reason;
  if (!reason.empty()) lines.push_back({{reason, style_of(run.state)}});
  lines.push_back({{format_fixed(run.samples_per_second, 0) + " samples/s, " + format_bytes(run.sent_bytes_per_step) +
                    " sent per node and step"}});
  lines.push_back({{bits_text(run)}});
  if (run.view > 1 || !run.departed.empty()) {
    const std::string members = members_text(run);
    lines.push_back({{"view " + std::to_string(run.view) + " since step " + std::to_string(run.view_step) +
                      (members.empty() ? "" : ", " + members)}});
  }
  for (const schema::Departure& one : run.departed) lines.push_back({{departure_text(one), kPoor}});
  if (!run.data_read.empty()) lines.push_back({{"data: " + run.data_read}});
  lines.push_back({{"job: " + run.model + ", " + run.data + ", " + run.gradients + " gradients, exchange " +
                    run.exchange + ", coding " + run.coding}});
  return lines;
}

// Plots loss at the left, accuracy at the right.
Sheet chart_lines(const Facts& facts, const View& view, std::size_t max) {
  const schema::RunStatus& run = *chosen_run(facts, view);
  const auto found = facts.histories.find(run.id);
  if (found == facts.histories.end() || max == 0) return {};
  const RunHistory& course = found->second;
  const std::size_t half = view.columns / 2;
  const std::string loss = run.step == 0 ? "no step yet"
                                         : "loss " + format_fixed(run.loss, 4) + ", steps " +
                                               std::to_string(course.first_step) + " to " + std::to_string(course.step);
  const std::string accuracy = run.evaluated ? "accuracy " + format_percent(run.evaluation_accuracy, 2) + ", step " +
                                                   std::to_string(run.evaluation_step)
                                             : "not evaluated yet";
  const auto joined = [&](const std::string& one, const std::string& other, unsigned style) {
    const std::string left = fit_line(one, half - std::min<std::size_t>(half, 1));
    const std::string air(half - schema::text_width(left), ' ');
    return ScreenLine{{left + air + other, style}};
  };
  Sheet lines{joined(loss, accuracy, kBold)};
  const std::vector<std::string> losses =
      plot(course.loss, {half - std::min<std::size_t>(half, 1), max - 1, view.utf8});
  const std::vector<std::string> accuracies = plot(course.accuracy, {view.columns - half, max - 1, view.utf8, true});
  for (std::size_t i = 0; i + 1 < max; ++i) lines.push_back(joined(losses[i], accuracies[i], kCurve));
  return lines;
}

void add_part(Sheet part, bool roomy, Sheet& sheet) {
  if (roomy && sheet.size() > 1) sheet.emplace_back();
  std::ranges::move(part, std::back_inserter(sheet));
}

Sheet mesh_page(const Facts& facts, const View& view) {
  const schema::MeshStatus& mesh = facts.mesh;
  const auto up = std::ranges::count(mesh.nodes, schema::NodeState::kUp, &schema::NodeStatus::state);
  Sheet sheet{title_line(mesh.node + ": " + std::to_string(up) + " of " + std::to_string(mesh.nodes.size()) +
                             " nodes up" + (mesh.insecure ? ", insecure" : ""),
                         "? help  q quit", view)};
  add_error(facts, view, sheet);
  const schema::RunStatus* const run = chosen_run(facts, view);
  const bool roomy = view.lines >= kRoomyLines;
  const std::size_t total = view.lines - std::min(view.lines, sheet.size() + (roomy ? 3 : 0));
  if (run == nullptr) {
    add_part(node_lines(facts, view, std::max<std::size_t>(total, 3) - 1), roomy, sheet);
    add_part({{{"no runs yet; tgctl start JOB starts one"}}}, roomy, sheet);
    return sheet;
  }
  Sheet about = about_lines(*run);
  std::size_t room = total - std::min(total, kMinChart);
  const auto take = [&](std::size_t wanted, std::size_t max) {
    const std::size_t taken = std::min({wanted, std::max<std::size_t>(max, 2), room});
    room -= taken;
    return taken;
  };
  const std::size_t runs = take(mesh.runs.size() + 1, total / 4);
  const std::size_t nodes = take(mesh.nodes.size() + 1, std::max<std::size_t>(3, total / 3));
  const std::size_t said = take(about.size(), std::max<std::size_t>(3, total / 5));
  about.resize(said + take(about.size() - said, total));
  if (nodes > 0) add_part(node_lines(facts, view, nodes), false, sheet);
  if (runs > 0) add_part(run_lines(facts, view, runs), roomy, sheet);
  add_part(std::move(about), roomy, sheet);
  add_part(chart_lines(facts, view, std::min(total, kMinChart) + room), roomy, sheet);
  return sheet;
}

std::vector<std::string> log_lines(const Facts& facts, const View& view) {
  std::vector<std::string> lines;
  std::string_view text = facts.log.text;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::ranges::move(schema::wrap_text(in_columns(text.substr(0, end), view.utf8), view.columns),
                      std::back_inserter(lines));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t body_lines(const View& view) { return view.lines > 2 ? view.lines - 2 : 1; }

Sheet log_page(const Facts& facts, const View& view) {
  const std::vector<std::string> lines = log_lines(facts, view);
  const std::size_t below = std::min(view.scroll, lines.size()), end = lines.size() - below;
  Sheet sheet{title_line("log of " + view.run + (facts.log.node.empty() ? "" : " at " + facts.log.node),
                         (below > 0 ? std::to_string(below) + " lines below  " : "") + "q back", view)};
  const std::string said = !facts.log.problem.empty() ? facts.log.problem
                           : !facts.error.empty()     ? "retrying: " + facts.error
                           : lines.empty()            ? "the log is empty"
                                                      : "";
  sheet.push_back({{said, kPoor}});
  for (std::size_t i = end - std::min(end, body_lines(view)); i < end; ++i) sheet.push_back({{lines[i]}});
  return sheet;
}

Sheet help_page(const View& view) {
  Sheet sheet{title_line("keys", "q back", view)};
  for (const char* const text :
       {"j, k, arrows: choose a run", "l: its log on the connected node; arrows, pages, g and G scroll",
        "?, h: this page", "q: quit; back from a page, as Esc", "",
        "WAIT: the share of their time that other members wait for this node.",
        "RATE: its samples/s. DEPARTED: nodes that left the run.",
        "Curves of a long run may begin when this view was opened. No key changes a run."})
    for (const std::string& line : schema::wrap_text(text, view.columns)) sheet.push_back({{line}});
  return sheet;
}

void on_log_key(int key, const Facts& facts, View& view) {
  const std::size_t all = log_lines(facts, view).size(), body = body_lines(view);
  const std::size_t max = all - std::min(all, body);
  if (key == 'q' || key == 'l' || key == kEscapeKey) view.page = Page::kMesh;
  if (key == kUpKey || key == 'k') view.scroll += 1;
  if (key == kPageUpKey) view.scroll += body;
  if (key == kHomeKey || key == 'g') view.scroll = max;
  const std::size_t down = key == kDownKey || key == 'j' ? 1 : key == kPageDownKey ? body : 0;
  view.scroll -= std::min(view.scroll, down);
  if (key == kEndKey || key == 'G') view.scroll = 0;
  view.scroll = std::min(view.scroll, max);
}

}  // namespace

const schema::RunStatus* chosen_run(const Facts& facts, const View& view) {
  return facts.mesh.runs.empty() ? nullptr : &facts.mesh.runs[chosen_place(facts, view)];
}

std::vector<ScreenLine> screen(const Facts& facts, const View& view) {
  Sheet sheet = view.page == Page::kHelp  ? help_page(view)
                : view.page == Page::kLog ? log_page(facts, view)
                                          : mesh_page(facts, view);
  sheet.resize(std::min(sheet.size(), view.lines));
  for (ScreenLine& line : sheet) line = cut_line(std::move(line), view);
  return sheet;
}

void on_key(int key, const Facts& facts, View& view) {
  if (view.page == Page::kLog) return on_log_key(key, facts, view);
  if (view.page == Page::kHelp) {
    if (key == 'q' || key == '?' || key == 'h' || key == kEscapeKey) view.page = Page::kMesh;
    return;
  }
  if (key == 'q') view.quit = true;
  if (key == '?' || key == 'h') view.page = Page::kHelp;
  if (facts.mesh.runs.empty()) return;
  std::size_t place = chosen_place(facts, view);
  const bool up = key == kUpKey || key == 'k', down = key == kDownKey || key == 'j';
  if (up && place > 0) --place;
  if (down && place + 1 < facts.mesh.runs.size()) ++place;
  if (up || down || key == 'l') view.run = facts.mesh.runs[place].id;
  if (key != 'l') return;
  view.page = Page::kLog;
  view.scroll = 0;
}

}  // namespace tg::ctl
