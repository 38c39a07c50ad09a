// What `status`, `list` and `start --dry-run` print for people, and start's warning. columns: as format_table has it.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ctl/format/table.h"
#include "schema/control/control.h"

namespace tg::ctl {

// Who is not up, and why: "node-b: unreachable, node-c: unreachable", "" if all are.
std::string nodes_away(const schema::MeshStatus& mesh);
// One sentence of a run that is INTERRUPTED, with the way out.
std::string interrupted_text(const schema::RunStatus& run);
// The same of one that is PAUSED: its reason has the way out.
std::string paused_text(const schema::RunStatus& run);
// "3 of 4 members", "" if all that ever were members are.
std::string members_text(const schema::RunStatus& run);
// "node-c left at step 203: no sign of life from node-c for 10 s"
std::string departure_text(const schema::Departure& one);
// Nodes, then runs.
std::string format_mesh(const schema::MeshStatus& mesh, std::int64_t now_ms, std::size_t columns = kColumns);
// One run: its numbers, then its members.
std::string format_run(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns = kColumns);
// Runs that go on before those that have ended, each kind in the order that it had.
void running_first(std::vector<schema::RunStatus>& runs);
// The table of runs alone: a line each, and a reason below it.
std::string format_runs(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms,
                        std::size_t columns = kColumns);
std::string format_plan(const schema::StartReply& plan);
// The warning with its numbers, where training together is predicted to gain too little (below kMinSpeedUp).
inline constexpr double kMinSpeedUp = 1.2;
std::optional<std::string> speed_up_warning(const schema::StartReply& plan);

}  // namespace tg::ctl
