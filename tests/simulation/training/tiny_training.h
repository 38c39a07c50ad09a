// What the simulated runs train: a model of five segments and two batch normalizations whose gradients and statistics
// are drawn, not computed; and the same training by the plain rules (tests/plain): one flat loop per step, no chunks,
// no frames, no members that wait.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/step/replica.h"
#include "engine/model.h"
#include "engine/optimizer.h"
#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"

namespace tg::simulation {

const engine::Model& tiny_model();
const engine::SegmentTable& tiny_segments();    // the model's
std::vector<std::string> tiny_segment_names();  // without those of the statistics

// The gradient of (seed, rank, step): bell-shaped, of a different size in every segment, all zero now and then.
void draw_gradient(std::uint64_t seed, std::size_t rank, std::uint64_t step, std::span<float> gradient);
double draw_loss(std::uint64_t seed, std::size_t rank, std::uint64_t step);
// What the member's samples measured, without padding.
std::vector<float> draw_statistics(std::uint64_t seed, std::size_t rank, std::uint64_t step);

// The whole algorithm on one machine, with the scalar kernels: the state after `steps` steps of `members` members.
struct ReferenceState {
  AlignedArray<float> parameters, slot0, slot1, average, statistics;
  std::uint64_t nonzero_means = 0;  // so that a test can see that something happened
};
ReferenceState train_reference(const schema::JobSpec& job, std::size_t members, std::uint64_t steps);
// The same where each step has members of its own; their draws are their seats'. weights: of their shares of the batch.
struct ReferenceView {
  std::vector<std::size_t> seats;
  std::vector<std::uint16_t> weights;
};
ReferenceState train_reference(const schema::JobSpec& job, const std::vector<ReferenceView>& views_by_step,
                               std::uint64_t global_batch);

// Names the first difference, "" if the bits are the same.
std::string difference(const ReferenceState& reference, const daemon::Replica& replica);

}  // namespace tg::simulation
