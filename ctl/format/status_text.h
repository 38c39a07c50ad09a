// The tables that `status`, `list` and `start --dry-run` print, and start's warning. columns: as in format_table. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ctl/format/table.h"
#include "schema/control/control.h"

namespace tg::ctl {

// The nodes that are not up, and why: "node-b: unreachable, node-c: unreachable"; "" if all are up.
std::string unavailable_nodes(const schema::MeshStatus& mesh);
// The sentence about an INTERRUPTED run, with the next action.
std::string interrupted_text(const schema::RunStatus& run);
// The sentence about a PAUSED run, with its reason, which has the next action.
std::string paused_text(const schema::RunStatus& run);
// "3 of 4 members"; "" if no member has departed.
std::string members_text(const schema::RunStatus& run);
// "node-c left at step 203: no sign of life from node-c for 10 s"
std::string departure_text(const schema::Departure& one);
// A mesh: its nodes, then its runs.
std::string format_mesh(const schema::MeshStatus& mesh, std::int64_t now_ms, std::size_t columns = kColumns);
// One run: its numbers, then its members.
std::string format_run(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns = kColumns);
// Moves active runs before those that have ended, and keeps the order otherwise.
void sort_active_first(std::vector<schema::RunStatus>& runs);
// The table of runs: a line each, with its reason below.
std::string format_runs(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms,
                        std::size_t columns = kColumns);
std::string format_plan(const schema::StartReply& plan);
// A warning with numbers if the predicted speed-up of training together is below kMinSpeedUp.
inline constexpr double kMinSpeedUp = 1.2;
std::optional<std::string> speed_up_warning(const schema::StartReply& plan);

}  // namespace tg::ctl
