#include "ctl/format/progress.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::int64_t kWindowMs = 20'000;
constexpr std::int64_t kMinWindowMs = 1'000;  // a shorter one gives no useful rate
constexpr std::int64_t kPlainMs = 10'000;
constexpr std::uint64_t kPlainSteps = 100;

// Joins parts with two spaces. The first that does not fit is left out, with all after it.
std::string join_parts(const std::vector<std::string>& parts, std::size_t columns) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!line.empty() && schema::text_width(line) + 2 + schema::text_width(part) > columns) break;
    line += (line.empty() ? "" : "  ") + part;
  }
  return fit_line(std::move(line), columns);
}

bool evaluating(const schema::RunStatus& run) {
  return std::any_of(run.members.begin(), run.members.end(), [](const schema::MemberStatus& member) {
    return member.phase == schema::Phase::kEvaluate && !schema::has_ended(member.state);
  });
}

std::string span_since(std::int64_t since_ms, std::int64_t now_ms) {
  return since_ms > 0 && now_ms > since_ms ? format_span(static_cast<double>(now_ms - since_ms) / 1000) : "";
}

}  // namespace

std::optional<double> seconds_left(const schema::RunStatus& run, std::int64_t now_ms) {
  const bool running = run.state == schema::RunState::kRunning;
  const std::int64_t since_ms = std::max(run.since_ms, run.view_since_ms);
  const std::uint64_t from_step = std::max(run.from_step, run.view_step);
  if (!running || run.step <= from_step || run.step > run.steps || run.since_ms <= 0 || now_ms <= since_ms)
    return std::nullopt;
  const double seconds = static_cast<double>(now_ms - since_ms) / 1000;
  return seconds * static_cast<double>(run.steps - run.step) / static_cast<double>(run.step - from_step);
}

std::string ProgressLine::update(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns) {
  if (std::exchange(view_, run.view) != run.view) window_.clear();
  window_.push_back({now_ms, run.step});
  while (window_.size() > 2 && now_ms - window_.front().at_ms > kWindowMs) window_.pop_front();

  std::vector<std::string> parts{to_word(run.state),
                                 "step " + std::to_string(run.step) + "/" + std::to_string(run.steps)};
  if (run.state == schema::RunState::kPaused) {
    window_.clear();
    const std::size_t taken = schema::text_width(parts[0]) + schema::text_width(parts[1]) + 4;
    parts.push_back(fit_line(run.reason, columns > taken ? columns - taken : 0));
    return join_parts(parts, columns);
  }
  const Observation& first = window_.front();
  const double seconds = static_cast<double>(now_ms - first.at_ms) / 1000;
  if (!schema::has_ended(run.state) && run.step > first.step && now_ms - first.at_ms >= kMinWindowMs) {
    const double rate = static_cast<double>(run.step - first.step) / seconds;
    const std::uint64_t left = run.steps > run.step ? run.steps - run.step : 0;
    parts.push_back(format_span(static_cast<double>(left) / rate) + " left");
  }
  if (!schema::has_ended(run.state)) parts.push_back(members_text(run));
  if (evaluating(run)) parts.emplace_back("evaluating");
  if (run.step > 0) parts.push_back("loss " + format_fixed(run.loss, 4));
  if (run.evaluated) parts.push_back("accuracy " + format_percent(run.evaluation_accuracy, 2));
  if (run.step > 0) parts.push_back(format_fixed(run.samples_per_second, 0) + " samples/s");
  return join_parts(parts, columns);
}

std::string RunNotices::update(const schema::RunStatus& run) {
  std::string left;
  for (const schema::Departure& one : run.departed) {
    if (std::ranges::count(left_, one.node) > 0) continue;
    left_.push_back(one.node);
    left += (left.empty() ? "" : ", ") + departure_text(one);
  }
  const bool first = std::exchange(first_, false);
  const bool changed = std::exchange(view_, run.view) != run.view && !first;
  const bool paused = run.state == schema::RunState::kPaused;
  const bool newly = !std::exchange(paused_, paused) && paused;
  if (newly) return paused_text(run);
  if (!changed || paused || schema::has_ended(run.state)) return "";
  return "run " + run.id + " continues at step " + std::to_string(run.view_step) + " with " +
         (left.empty() ? "the same members" : members_text(run) + ": " + left);
}

std::string preparing_line(const schema::MeshStatus& mesh, const schema::RunStatus& run, std::int64_t now_ms,
                           std::size_t columns) {
  const std::string away = unavailable_nodes(mesh);
  const std::string waiting = !away.empty()        ? "waiting for " + away
                              : run.reason.empty() ? "waiting for its turn"
                                                   : run.reason;
  return join_parts({to_word(run.state), span_since(run.since_ms, now_ms),
                     run.state == schema::RunState::kPending ? fit_line(waiting, columns > 20 ? columns - 20 : 0)
                     : run.reason.empty()                    ? "nodes load data, build engines, measure links"
                                                             : run.reason},
                    columns);
}

std::string activity_line(const std::string& asked, const std::string& what, std::int64_t began_ms, std::int64_t now_ms,
                          std::size_t columns) {
  return join_parts({asked, span_since(began_ms, now_ms), what}, columns);
}

bool LineThrottle::due(const schema::RunStatus& run, std::int64_t now_ms) {
  if (run.state == schema::RunState::kPaused) {
    last_state_ = run.state;
    return false;
  }
  const bool evaluates = evaluating(run);
  const bool due = first_ || run.state != last_state_ || evaluates != evaluated_ || now_ms - last_ms_ >= kPlainMs ||
                   run.step >= last_step_ + kPlainSteps;
  if (!due) return false;
  evaluated_ = evaluates;
  first_ = false;
  last_ms_ = now_ms;
  last_step_ = run.step;
  last_state_ = run.state;
  return true;
}

}  // namespace tg::ctl
