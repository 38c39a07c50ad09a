// The replicated state of a run on one member: parameters, optimizer slots (both double-buffered) and the moving
// average.
//
// Step k+1 is written beside step k; commit() swaps the two, so an interrupted step is dropped for free. Owns its
// arrays; shapes are those of the segment table (flat, padded). Written by the exchange's threads, each its own parts;
// the compute thread reads the parameters of a step, segment by segment as they become final, until its backward is
// over.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/segment.h"
#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::daemon {

class Replica {
 public:
  // State 0: the initial parameters drawn from the seed, slots 0, the average equal to the parameters. Without an
  // average of its own (ema = 0) the parameters stand for it.
  Replica(const engine::SegmentTable& segments, int slot_count, std::uint64_t seed, bool keeps_average = true);

  kernels::ConstStateSpan committed(std::size_t begin, std::size_t count) const;
  kernels::StateSpan next(std::size_t begin, std::size_t count);
  std::span<const float> parameters() const { return halves_[current_].parameters.span(); }
  std::span<const float> slot(int index) const {
    return halves_[current_].slots[static_cast<std::size_t>(index)].span();
  }
  std::span<const float> average() const { return keeps_average_ ? average_.span() : parameters(); }
  bool keeps_average() const { return keeps_average_; }
  // Of the step in progress: a segment's part is final once all its chunks have been applied. The same memory becomes
  // parameters() with the commit.
  std::span<const float> next_parameters() const { return halves_[1 - current_].parameters.span(); }
  int slot_count() const { return slot_count_; }

  // Every chunk of the step has been applied: it becomes the state. Then the average moves (rate = 1 - decay).
  void commit(const kernels::Kernels& kernels, float average_rate);
  std::uint64_t committed_steps() const { return committed_steps_; }

  // One hash per segment over parameters, slots and average; digest() is their sum.
  std::vector<std::uint64_t> segment_digests(const kernels::Kernels& kernels) const;
  static std::uint64_t combine(const std::vector<std::uint64_t>& segment_digests);

  void flip_bit(std::size_t element);  // fault injection: what broken memory would do
  static std::size_t bytes(const engine::SegmentTable& segments, int slot_count, bool keeps_average);

 private:
  struct Half {
    AlignedArray<float> parameters;
    std::vector<AlignedArray<float>> slots;
  };
  const engine::SegmentTable& segments_;
  const int slot_count_;
  const bool keeps_average_;
  Half halves_[2];
  AlignedArray<float> average_;
  std::size_t current_ = 0;
  std::uint64_t committed_steps_ = 0;
};

}  // namespace tg::daemon
