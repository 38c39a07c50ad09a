// Translates a job for the exchange: its layout, its updates, the memory that it takes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/exchange/code_rule.h"
#include "daemon/exchange/layout.h"
#include "daemon/step/job_data.h"
#include "engine/model.h"
#include "engine/segment.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

// What a job's gradients are made into; shared by everything that builds a Member or its Replica.
CodeRule code_rule(const schema::JobSpec& job);
bool keeps_average(const schema::JobSpec& job);
bool keeps_best(const schema::JobSpec& job);
LayoutOptions layout_options(const schema::JobSpec& job, std::size_t members, const schema::Commit& choice);
struct Layouts {
  Layout layout;
  std::optional<Layout> of_float_steps;  // where the job begins with some
};
Layouts layouts_of(const schema::JobSpec& job, const engine::SegmentTable& segments, std::size_t members,
                   const schema::Commit& choice);
// Memory of the program itself: code, libraries, stacks, the allocator's reserve.
inline constexpr std::uint64_t kProgramBytes = 32u << 20;
// Gradient and state, as far as they are in the memory space that computes.
std::uint64_t space_bytes(const schema::JobSpec& job, const engine::Model& model);
// The copy that a checkpoint is written from; 0 where none are written.
std::uint64_t checkpoint_bytes(const schema::JobSpec& job, const engine::Model& model);
// What a run takes at most on a node's disk: two checkpoints, one that is being written, the last state, two models.
// What a node that comes in is given is such a checkpoint there; the vote, metrics and log are small beside it.
std::uint64_t disk_bytes(const schema::JobSpec& job, const engine::Model& model);
// What a member with so many workers holds for the whole of a run: state, best model, gradient, buffers, frames under
// way, idle frame buffers, the copy for a checkpoint, what is in flight to a node that comes in, the program. Without
// what the engine keeps between forward and backward.
std::uint64_t member_bytes(const schema::JobSpec& job, const engine::Model& model, const Layouts& layouts,
                           std::size_t workers);

}  // namespace tg::daemon
