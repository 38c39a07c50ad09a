#include "ctl/format/status_text.h"

#include <algorithm>
#include <utility>

#include "ctl/format/comparison.h"
#include "ctl/format/progress.h"
#include "ctl/plan/plan_report.h"
#include "kernels/base/hex.h"
#include "kernels/base/joined.h"

namespace tg::ctl {
namespace {

constexpr std::string_view kNothing = "-";
constexpr std::size_t kWideColumns = 110;  // from this width on a list has a column for differences

std::string or_nothing(std::string text) { return text.empty() ? std::string(kNothing) : text; }

std::string when_stepped(const schema::RunStatus& run, std::string text) {
  return run.step == 0 ? std::string(kNothing) : text;
}

std::string accuracy(const schema::RunStatus& run) {
  return run.evaluated ? format_percent(run.evaluation_accuracy, 2) : std::string(kNothing);
}

std::string age(std::int64_t since_ms, std::int64_t now_ms) {
  return since_ms <= 0 ? std::string(kNothing) : format_span(static_cast<double>(now_ms - since_ms) / 1000);
}

std::string eta(const schema::RunStatus& run, std::int64_t now_ms) {
  const std::optional<double> seconds = seconds_left(run, now_ms);
  return seconds ? format_span(*seconds) : std::string(kNothing);
}

// "2, since step 203, 3 of 4 members, most senior: node-a"; "" in the first view.
std::string view(const schema::RunStatus& run) {
  if (run.view <= 1) return "";
  std::string text = std::to_string(run.view) + ", since step " + std::to_string(run.view_step);
  if (!run.departed.empty()) text += ", " + members_text(run);
  for (const schema::MemberStatus& member : run.members)
    if (member.seniority == 1) text += ", most senior: " + member.node;
  return text;
}

std::string next_step(const schema::RunStatus& run) {
  return run.next.empty() ? "tgctl resume " + run.id + " continues it" : run.next;
}

// Why the run is in its state, and the next action.
std::string reason_text(const schema::RunStatus& run) {
  if (run.state != schema::RunState::kInterrupted) return run.reason;
  return run.reason + (run.reason.empty() ? "" : "; ") + next_step(run);
}

// "900, 600 (node-b: 600; node-c: none)": the steps of the states that those with a state share; others'.
std::string states(const schema::RunStatus& run) {
  const auto listed = [](const std::vector<std::uint64_t>& steps) {
    return steps.empty() ? "none" : joined(steps, ", ", [](std::uint64_t step) { return std::to_string(step); });
  };
  std::vector<std::uint64_t> newest, shared;
  for (const schema::MemberStatus& member : run.members) newest = std::max(newest, member.states);
  for (const std::uint64_t step : newest)
    if (std::ranges::all_of(run.members, [&](const schema::MemberStatus& member) {
          return member.states.empty() || std::ranges::count(member.states, step) > 0;
        }))
      shared.push_back(step);
  if (shared.empty()) shared = newest;
  std::string others;
  for (const schema::MemberStatus& member : run.members)
    if (member.states != shared) others += (others.empty() ? "" : "; ") + member.node + ": " + listed(member.states);
  return newest.empty() ? "" : listed(shared) + (others.empty() ? "" : " (" + others + ")");
}

std::string digest(std::uint64_t value) { return value == 0 ? std::string(kNothing) : hex_digest(value); }

// "backward 12 s of 60 s": the time without progress, and that after which the member is evicted.
std::string phase_text(const schema::MemberStatus& member) {
  if (schema::has_ended(member.state) || !member.is_heard()) return std::string(kNothing);
  if (member.phase_limit_ms == 0) return to_word(member.phase);
  return std::string(to_word(member.phase)) + " " + std::to_string(member.phase_ms / 1000) + " s of " +
         std::to_string(member.phase_limit_ms / 1000) + " s";
}

// The shares of a step that are known.
std::vector<schema::MemberShare> shares_of(const schema::RunStatus& run) {
  std::vector<schema::MemberShare> shares;
  for (const schema::MemberStatus& member : run.members)
    if (member.samples > 0) shares.push_back({member.node, member.samples});
  return shares;
}

// Adds a row for each line.
void add_lines(const std::string& name, const std::string& lines, Rows& rows) {
  for (const std::string& line : lines_of(lines)) rows.push_back({name, line});
}

// "seed = 3, steps = 200": the keys that the run's job sets.
std::string one_line(const schema::RunStatus& run) {
  return joined(settings_of(run), ", ", [](const auto& setting) { return setting.first + " = " + setting.second; });
}

// "64, at most 16 per member", "64, split by weight: node-a 48, node-b 16"
std::string batch(const schema::StartReply& plan) {
  std::uint64_t max = plan.local_batch;
  for (const schema::MemberShare& share : plan.shares) max = std::max(max, share.samples);
  const std::string uneven = schema::uneven_shares(plan.shares);
  return std::to_string(plan.global_batch) +
         (uneven.empty() ? ", at most " + std::to_string(max) + " per member" : ", split by weight: " + uneven);
}

// "2.5", "61"
std::string short_number(double value) {
  const std::string text = format_fixed(value, 1);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// "122, 2 epochs of 61 steps"
std::string steps(const schema::StartReply& plan) {
  const std::string text = std::to_string(plan.steps);
  if (plan.training_samples == 0 || plan.global_batch == 0) return text;
  const double epoch = static_cast<double>(plan.training_samples) / static_cast<double>(plan.global_batch);
  return text + ", " + short_number(static_cast<double>(plan.steps) / epoch) + " epochs of " + short_number(epoch) +
         " steps";
}

}  // namespace

std::string interrupted_text(const schema::RunStatus& run) {
  return "run " + run.id + " is INTERRUPTED at step " + std::to_string(run.step) +
         (run.reason.empty() ? "" : ": " + run.reason) + "; " + next_step(run);
}

std::string paused_text(const schema::RunStatus& run) {
  return "run " + run.id + " is PAUSED at step " + std::to_string(run.step) + ": " + run.reason;
}

std::string members_text(const schema::RunStatus& run) {
  if (run.departed.empty()) return "";
  return std::to_string(run.members.size()) + " of " + std::to_string(run.members.size() + run.departed.size()) +
         " members";
}

std::string departure_text(const schema::Departure& one) {
  return one.node + " left at step " + std::to_string(one.step) + ": " + one.why;
}

std::string unavailable_nodes(const schema::MeshStatus& mesh) {
  std::string away;
  for (const schema::NodeStatus& node : mesh.nodes) {
    const bool up = node.state == schema::NodeState::kUp;
    if (up && node.compute.problem.empty()) continue;
    const std::string& problem = up ? node.compute.problem : node.problem;
    away += (away.empty() ? "" : ", ") + node.name + ": " + (problem.empty() ? to_word(node.state) : problem);
  }
  return away;
}

namespace {

// The device that trains on each node; "" if all use the processor and have no module for a device.
std::string format_devices(const schema::MeshStatus& mesh, std::size_t columns) {
  Rows rows{{"NODE", "ENGINE", "MATH", "GPU MEMORY FREE"}};
  std::vector<std::string> notes{""};
  bool any = false;
  for (const schema::NodeStatus& node : mesh.nodes) {
    const schema::ComputeStatus& compute = node.compute;
    const bool is_device = !compute.device.empty();
    any |= is_device || (!compute.why_cpu.empty() && !compute.module_missing);
    rows.push_back({node.name, or_nothing(compute.engine), or_nothing(compute.math),
                    is_device ? format_bytes(static_cast<double>(compute.free_bytes)) + " of " +
                                    format_bytes(static_cast<double>(compute.total_bytes))
                              : std::string(kNothing)});
    notes.push_back(!is_device                ? compute.why_cpu
                    : compute.problem.empty() ? compute.device
                                              : compute.device + ": " + compute.problem);
  }
  return any ? "\n" + format_table(rows, notes, columns) : "";
}

}  // namespace

std::string format_runs(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms, std::size_t columns) {
  if (runs.empty()) return "no runs\n";
  Rows rows{{"RUN", "STATE", "FOR", "LEFT", "STEP", "LOSS", "ACCURACY"}};
  const std::vector<std::string> differing = differing_settings(runs);
  const bool column = columns >= kWideColumns && !differing.front().empty();
  if (column) rows[0].push_back("DIFFERS");
  std::vector<std::string> notes{""};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const schema::RunStatus& run = runs[i];
    rows.push_back({run.id, std::string(to_word(run.state)), age(run.since_ms, now_ms), eta(run, now_ms),
                    std::to_string(run.step) + "/" + std::to_string(run.steps),
                    when_stepped(run, format_fixed(run.loss, 4)), accuracy(run)});
    if (column) rows.back().push_back(fit_line(differing[i], columns - kColumns));
    std::string text = schema::has_ended(run.state) ? "" : members_text(run);
    for (const std::string& more : {reason_text(run), column ? std::string() : differing[i]})
      text += (text.empty() || more.empty() ? "" : "; ") + more;
    notes.push_back(text);
  }
  return format_list(std::move(rows), notes, columns);
}

std::string format_mesh(const schema::MeshStatus& mesh, std::int64_t now_ms, std::size_t columns) {
  Rows rows{{"NODE", "ADDRESS", "STATE"}};
  std::vector<std::string> notes{""};
  for (const schema::NodeStatus& node : mesh.nodes) {
    rows.push_back({node.name, node.address, to_word(node.state)});
    notes.push_back(node.problem);
  }
  std::string text = format_table(rows, notes, columns) + format_devices(mesh, columns) + "\n" +
                     format_runs(mesh.runs, now_ms, columns);
  if (mesh.insecure)
    text += "\n" + format_text(mesh.node + " listens beyond loopback without keys (insecure = true)", 0, columns);
  return text;
}

std::string format_run(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns) {
  const std::string rest = eta(run, now_ms);
  const bool starts = run.state == schema::RunState::kPending || run.state == schema::RunState::kStarting;
  Rows rows{
      {"run", run.id},
      {"state", std::string(to_word(run.state)) + " for " + age(run.since_ms, now_ms) +
                    (rest == kNothing ? "" : ", about " + rest + " left")},
  };
  if (const std::string why = reason_text(run); !why.empty()) rows.push_back({"reason", why});
  rows.push_back({"started", or_nothing(format_second(run.started_ms))});
  if (schema::has_ended(run.state)) rows.push_back({"ended", or_nothing(format_second(run.since_ms))});
  rows.push_back({"model, data", or_nothing(run.model) + ", " + or_nothing(run.data)});
  if (!run.data_read.empty()) rows.push_back({"data read", run.data_read});
  add_lines("warning", run.data_warnings, rows);
  if (!run.settings.empty()) rows.push_back({"job", one_line(run)});
  const bool alike = run.last_layer.empty() || run.last_layer == run.gradients;
  rows.push_back({"gradients", or_nothing(run.gradients) + (alike ? "" : ", last layer " + run.last_layer) +
                                   ", exchange " + or_nothing(run.exchange) + ", coding " + or_nothing(run.coding)});
  if (const std::string uneven = schema::uneven_shares(shares_of(run)); !uneven.empty())
    rows.push_back({"samples/step", uneven});
  rows.push_back({"step", std::to_string(run.step) + " of " + std::to_string(run.steps)});
  if (const std::string members = view(run); !members.empty()) rows.push_back({"view", members});
  if (run.lineage > 1)
    rows.push_back({"resumed", std::to_string(run.lineage - 1) + (run.lineage == 2 ? " time" : " times") +
                                   (starts ? "" : ", last from step " + std::to_string(run.from_step))});
  if (const std::string from = schema::has_ended(run.state) ? states(run) : ""; !from.empty())
    rows.push_back({"resume points", from});
  if (run.step > 0) {
    rows.push_back({"loss", format_fixed(run.loss, 4) + ", learning rate " + format_fixed(run.learning_rate, 6)});
    rows.push_back({"samples/s", format_fixed(run.samples_per_second, 0)});
    rows.push_back({"bits/parameter", format_fixed(run.code_bits_per_parameter, 3) + " codes, " +
                                          format_fixed(run.sent_bits_per_parameter, 3) + " sent, " +
                                          format_percent(run.zeros, 1) + " zeros"});
    rows.push_back({"sent", format_bytes(run.sent_bytes_per_step) + " per node and step"});
  }
  if (run.evaluated) {
    const std::string top_5 =
        run.evaluation_accuracy_5 > 0 ? " (top-5 " + format_percent(run.evaluation_accuracy_5, 2) + ")" : "";
    rows.push_back({"evaluation", "accuracy " + accuracy(run) + top_5 + ", loss " +
                                      format_fixed(run.evaluation_loss, 4) + ", step " +
                                      std::to_string(run.evaluation_step)});
    if (run.best_step > 0 && run.best_step != run.evaluation_step)
      rows.push_back(
          {"best", "accuracy " + format_percent(run.best_accuracy, 2) + ", step " + std::to_string(run.best_step)});
  }
  const bool ended = schema::has_ended(run.state);
  rows.push_back({"digest", digest(run.digest) + (run.digest == 0 ? "" : ", step " + std::to_string(run.digest_step))});
  Rows members{{"MEMBER", "STATE", "STEP", ended ? "DIGEST" : "COMPARED", ended ? "SAVED" : "PHASE", "WAITED FOR"}};
  std::vector<std::string> notes{""};
  for (const schema::MemberStatus& member : run.members) {
    const bool waits = member.data_wait_share > schema::kMinDataWaitShare;
    const bool silent = !member.is_heard();
    notes.push_back(silent  ? member.problem
                    : waits ? "waits for data " + format_percent(member.data_wait_share, 0) + " of its time"
                            : "");
    members.push_back({member.node, silent ? std::string(kNothing) : std::string(to_word(member.state)),
                       member.step == 0 && run.step > 0 ? std::string(kNothing) : std::to_string(member.step),
                       ended                ? digest(member.digest)
                       : member.digest == 0 ? std::string(kNothing)
                                            : std::to_string(member.digest_step),
                       ended ? std::string(to_word(member.save)) : phase_text(member),
                       format_percent(member.wait_share, 0) + (member.holds_up() ? ", holds the run up" : "")});
  }
  for (const schema::Departure& one : run.departed) {
    const std::string nothing(kNothing);
    members.push_back({one.node, "left", std::to_string(one.step), nothing, nothing, nothing});
    notes.push_back("left at step " + std::to_string(one.step) + ", " + or_nothing(format_second(one.since_ms)) + ": " +
                    one.why);
  }
  return format_table(rows, {}, columns) + "\n" + format_table(members, notes, columns);
}

std::string format_plan(const schema::StartReply& plan) {
  const bool replays = plan.unpredicted.empty() && plan.predicted.speed_up <= 0;
  Rows rows{
      {"run", or_nothing(plan.run_id)},
      {"steps", steps(plan)},
      {"members", std::to_string(plan.members)},
      {"global batch", batch(plan)},
      {"parameters", std::to_string(plan.parameters)},
      {"data read", or_nothing(plan.data_read)},
      {"exchange", or_nothing(plan.exchange) + ", coding " + or_nothing(plan.coding)},
      {"compute",
       replays ? "nothing, gradients are replayed" : format_seconds(plan.compute_seconds) + " per step, measured"},
      {"memory", format_bytes(static_cast<double>(plan.memory_bytes)) + " per node" +
                     (plan.device_bytes == 0
                          ? ""
                          : ", and " + format_bytes(static_cast<double>(plan.device_bytes)) + " of its GPU's")},
  };
  add_lines("warning", plan.data_warnings, rows);
  if (plan.disk_bytes > 0)
    rows.push_back({"disk", "up to " + format_bytes(static_cast<double>(plan.disk_bytes)) + " per node"});
  if (!plan.unpredicted.empty()) {
    rows.push_back({"not predicted", plan.unpredicted});
    return format_table(rows);
  }
  const schema::Outcome& step = plan.predicted;
  rows.push_back({"step", format_seconds(step.step) + ": compute " + format_seconds(step.compute) + ", wire " +
                              format_seconds(step.wire) + " at " + format_mbps(plan.link_mbps) + " of payload"});
  rows.push_back({"bound by", bound_of(step)});
  rows.push_back({"sent", format_bytes(step.sent_bytes) + " per node and step"});
  if (!replays) {
    rows.push_back({"one node alone", format_seconds(step.step * step.speed_up) + " per step"});
    rows.push_back({"speed-up", format_fixed(step.speed_up, 2) + " x over one node"});
  }
  return format_table(rows);
}

void sort_active_first(std::vector<schema::RunStatus>& runs) {
  std::stable_partition(runs.begin(), runs.end(),
                        [](const schema::RunStatus& run) { return !schema::has_ended(run.state); });
}

std::optional<std::string> speed_up_warning(const schema::StartReply& plan) {
  const schema::Outcome& step = plan.predicted;
  if (!plan.unpredicted.empty() || step.speed_up <= 0 || !(step.speed_up < kMinSpeedUp) || plan.members < 2)
    return std::nullopt;
  return std::to_string(plan.members) + " members are predicted to be only " + format_fixed(step.speed_up, 2) +
         " x as fast as one node: a step of " + format_seconds(step.step) + " has " + format_seconds(step.compute) +
         " of computing and " + format_seconds(step.wire) + " of sending at " + format_mbps(plan.link_mbps) +
         "; one node alone takes " + format_seconds(step.step * step.speed_up) + ". A larger global-batch helps";
}

}  // namespace tg::ctl
