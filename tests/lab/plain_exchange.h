// What a replayed run must end with, computed plainly: all members in one process, element by element, without frames,
// chunks or threads, by the plain rules (tests/plain). Shares with tgd only the gradients, the scalar kernels and the
// step's rates.
//
// Scalers need whole segments; codes, sums and updates are computed for slices of every segment, so that a model of any
// size can be checked. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model.h"
#include "kernels/base/aligned_array.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::lab {

// Elements [first, first + count) of a segment; `first` is a multiple of kernels::kBlock.
struct Slice {
  std::size_t segment = 0, first = 0, count = 0;
  std::vector<float> parameters, velocity;     // after the run's last step
  std::vector<AlignedArray<float>> gradients;  // by rank; padded
};

// Slices of every segment, its first and its last elements among them; about `most` elements in all, 0 = everything.
std::vector<Slice> cut_slices(const engine::SegmentTable& segments, std::size_t most);

// What the codes of one step hold, per model: bits at the entropy of every segment's own counts.
struct Entropies {
  std::vector<double> code_bits;   // by rank
  double sum_bits = 0;             // the ternary segments', only where scalers are shared: else no member sends a sum
  std::vector<double> zeros;       // share of zero codes in the ternary segments, by rank
  double code_bits_of_floats = 0;  // in code_bits and sum_bits alike: 32 or 16 for every element that travels as float
};

struct PlainRun {
  std::vector<Slice> slices;
  Entropies entropies;
};

// Errors: a job that no run accepts or that this reference does not know (adam, schedules, float steps), unreadable
// gradients, gradients that float16 cannot hold.
Result<PlainRun> run_plainly(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::size_t most_elements);

}  // namespace tg::lab
