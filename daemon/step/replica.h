// The replicated state of a run on one member: parameters, optimizer slots (both double-buffered) and the moving
// average.
//
// Step k+1 is written beside step k; commit() swaps the two, so an interrupted step is dropped for free. Owns its
// arrays, which lie in the run's home: nobody reads or writes them but through tensor kernels. Shapes are those of the
// segment table (flat, padded). Written by the exchange's threads, each its own parts; the compute thread reads the
// parameters of a step, segment by segment as they become final, until its backward is over. What computes here (the
// constructor, commit, digests, copy_out, flip_bit) is called by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/initial_file.h"
#include "engine/segment.h"
#include "kernels/home_array.h"

namespace tg::daemon {

class Replica {
 public:
  // State 0: the initial parameters drawn from the seed, slots 0, the average equal to the parameters. Without an
  // average of its own (ema = 0) the parameters stand for it. initial: where the parameters come from in place of the
  // seed; needed no longer than the call, which throws what it throws.
  Replica(kernels::Home& home, const engine::SegmentTable& segments, int slot_count, std::uint64_t seed,
          bool keeps_average = true, const engine::InitialFile* initial = nullptr);

  kernels::ConstStateFloats committed(std::size_t begin, std::size_t count) const;
  kernels::StateFloats next(std::size_t begin, std::size_t count);
  kernels::ConstFloats parameters() const { return halves_[current_].parameters.floats(); }
  kernels::ConstFloats slot(int index) const {
    return halves_[current_].slots[static_cast<std::size_t>(index)].floats();
  }
  kernels::ConstFloats average() const { return keeps_average_ ? average_.floats() : parameters(); }
  bool keeps_average() const { return keeps_average_; }
  // Of the step in progress: a segment's part is final once all its chunks have been applied. The same memory becomes
  // parameters() with the commit.
  kernels::ConstFloats next_parameters() const { return halves_[1 - current_].parameters.floats(); }
  int slot_count() const { return slot_count_; }

  // Every chunk of the step has been applied: it becomes the state. Then the average moves (rate = 1 - decay).
  void commit(float average_rate);
  std::uint64_t committed_steps() const { return committed_steps_; }

  // One hash per segment over parameters, slots and average; digest() is their sum.
  std::vector<std::uint64_t> segment_digests() const;
  static std::uint64_t combine(const std::vector<std::uint64_t>& segment_digests);

  // Of one of the arrays above: elements [first, first + values.size()).
  void copy_out(kernels::ConstFloats array, std::size_t first, std::span<float> values) const;

  void flip_bit(std::size_t element);  // fault injection: what broken memory would do
  static std::size_t bytes(const engine::SegmentTable& segments, int slot_count, bool keeps_average);

 private:
  struct Half {
    kernels::HomeArray parameters;
    std::vector<kernels::HomeArray> slots;
  };
  void initialize(std::uint64_t seed, const engine::InitialFile* initial);

  const engine::SegmentTable& segments_;
  const int slot_count_;
  const bool keeps_average_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  Half halves_[2];
  kernels::HomeArray average_;
  std::size_t current_ = 0;
  std::uint64_t committed_steps_ = 0;
};

}  // namespace tg::daemon
