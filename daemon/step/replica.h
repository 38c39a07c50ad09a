// The replicated state of a run on one member: parameters, optimizer slots, running statistics (all double-buffered)
// and the moving average; and, where it is asked to, the model of the best evaluation.
//
//   next() of every part -> commit(): this member holds the state -> confirm(): all members hold it -> next() ...
//                                                                 or undo()
//
// State k+1 is written beside state k; commit() swaps the two, so an interrupted step is dropped for free, and undo()
// swaps them back. The average is no half: it moves once a state is confirmed, which cannot be undone. Owns its
// arrays, which lie in the run's memory space: they are read and written only through tensor kernels. Only statistics
// are in host memory, as the engine wants them, and the best model, which is never computed with. Shapes are those of
// the model's tables (flat, padded). Written by the exchange's threads, each its own parts; the compute thread reads
// the parameters of a step, segment by segment as they become final, until its backward is over. What computes here
// (the constructor, restore, commit, confirm, digests, copy_out, flip_bit) is called by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "daemon/step/state_arrays.h"
#include "engine/initial_file.h"
#include "engine/model.h"
#include "kernels/base/aligned_array.h"
#include "kernels/memory_array.h"
#include "schema/step.h"

namespace tg::daemon {

class Replica {
 public:
  // State 0: the initial parameters drawn from the seed, slots 0, the average equal to the parameters. Without an
  // average of its own (ema = 0) the parameters stand for it. initial: where parameters and statistics come from in
  // place of the seed; needed no longer than the call, which throws what it throws. advance: called after each part
  // that was drawn or read; what it throws passes through. The model outlives the replica.
  Replica(
      kernels::MemorySpace& space, const engine::Model& model, int slot_count, std::uint64_t seed,
      bool keeps_average = true, const engine::InitialFile* initial = nullptr,
      const std::function<void()>& advance = [] {});

  // One that keeps no state of its own: it counts rounds, and what is read of it is read of the keeper, another replica
  // in this process. The keeper commits a round, and confirms a state, before this one says the same; to read of a
  // keeper that stands elsewhere is a bug, and so is undo(). Nothing is written to it, and it is in no file.
  explicit Replica(std::shared_ptr<const Replica> keeper);

  // Before anything else: from now on there is room for the best model, zeros until keep_best().
  void make_room_for_best();

  // Takes over the state of so many rounds, which is confirmed. Errors as of the arrays; they have what this replica
  // has: slots, an average if it keeps one, perhaps a best model. After an error the state is a mixture. advance: as
  // above.
  Status restore(
      const StateArrays& arrays, Round round, const std::function<void()>& advance = [] {});

  // A state that comes in parts from another member: the arrays of a state, in this order: parameters, slots, the
  // average if it keeps one, running statistics, the best model if it keeps one. Elements of each as they lie there;
  // give() between holds of the state, take() before it is used, and begin_at() once all are of the state of so many
  // rounds, which is confirmed.
  std::vector<std::size_t> array_sizes() const;
  void give(std::size_t array, std::size_t first, std::span<float> values) const;
  void take(std::size_t array, std::size_t first, std::span<const float> values);
  void begin_at(Round round);

  kernels::ConstStateFloats committed(std::size_t begin, std::size_t count) const;
  kernels::StateFloats next(std::size_t begin, std::size_t count);
  struct Best {
    AlignedArray<float> parameters, statistics;
  };
  const Best& best() const { return best_; }
  bool keeps_state() const { return keeper_ == nullptr; }
  kernels::ConstFloats parameters() const { return state().halves_[state().current_].parameters.floats(); }
  kernels::ConstFloats slot(int index) const {
    return state().halves_[state().current_].slots[static_cast<std::size_t>(index)].floats();
  }
  kernels::ConstFloats average() const { return keeps_average_ ? state().average_.floats() : parameters(); }
  bool keeps_average() const { return keeps_average_; }
  bool keeps_best() const { return best_.parameters.size() > 0; }
  std::span<const float> statistics() const { return state().halves_[state().current_].statistics.span(); }
  // The parameters of the step in progress: a segment is final once all its chunks have been applied. The same memory
  // becomes parameters() with the commit.
  kernels::ConstFloats next_parameters() const { return halves_[1 - current_].parameters.floats(); }
  int slot_count() const { return slot_count_; }

  // Every chunk of the step has been applied: it becomes the state, with the running statistics a step nearer to what
  // all members measured (without padding; empty for a model without). The state before it is confirmed.
  void commit(std::span<const float> measured);
  // All members hold the committed state: the average moves (rate = 1 - decay), by at most so many elements in a call.
  // True once it has moved whole, with which the state is confirmed. Parts are whole blocks (kernels::kBlock).
  bool confirm(float average_rate, std::size_t most_elements = SIZE_MAX);
  // Goes back to the state before the committed one, which is not confirmed; no part of it is being written. redo()
  // takes that back, as long as nothing was written since.
  void undo();
  void redo();
  Round committed_rounds() const { return committed_rounds_; }
  Round confirmed_rounds() const { return confirmed_rounds_; }  // committed_rounds() or one less

  // The confirmed state's model, as its evaluation read it, is the best one so far. All members decide so by the same
  // evaluations, of states with one digest; so no digest covers it.
  void keep_best();

  // One hash per segment over parameters, slots and average, then one per running statistic; combine() is their sum.
  std::vector<std::uint64_t> segment_digests() const;
  static std::uint64_t combine(const std::vector<std::uint64_t>& segment_digests);

  // Copies elements [first, first + values.size()) of one of the arrays above.
  void copy_out(kernels::ConstFloats array, std::size_t first, std::span<float> values) const;

  void flip_bit(std::size_t element);  // fault injection: what broken memory would do
  static std::size_t bytes(const engine::Model& model, int slot_count, bool keeps_average);
  static std::size_t best_bytes(const engine::Model& model);
  std::size_t bytes() const {
    return bytes(model_, slot_count_, keeps_average_) + (keeps_best() ? best_bytes(model_) : 0);
  }

 private:
  struct Half {
    kernels::MemoryArray parameters;
    std::vector<kernels::MemoryArray> slots;
    AlignedArray<float> statistics;
  };
  const Replica& state() const;
  // To the other half, for which no chunk writes them. Their slots stay 0.
  void copy_frozen();
  // The part of array_sizes() in the memory space, which comes first, and the rest.
  std::size_t space_arrays() const { return 1 + static_cast<std::size_t>(slot_count_) + (keeps_average_ ? 1 : 0); }
  kernels::MemoryArray& array(std::size_t index);
  std::span<float> host_array(std::size_t index);
  Status fill(const engine::ReadFloats& from, kernels::Floats to, const std::function<void()>& advance);
  void initialize(std::uint64_t seed, const engine::InitialFile* initial, const std::function<void()>& advance);

  const std::shared_ptr<const Replica> keeper_;  // keeps the state; empty: this one does
  const engine::Model& model_;
  const engine::SegmentTable& segments_;  // the model's
  const int slot_count_;
  const bool keeps_average_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  Half halves_[2];
  kernels::MemoryArray average_;
  Best best_;  // empty if none is kept
  std::size_t current_ = 0;
  Round committed_rounds_, confirmed_rounds_;
  std::size_t averaged_ = 0;  // elements of the average that have moved to the committed state
  bool undone_ = false;
};

// Arrays of the replica itself, which must outlive them; read by one thread at a time. advance: called after each part.
StateArrays arrays_of(
    const Replica& replica, const std::function<void()>& advance = [] {});
// Arrays of a copy in memory that they keep alive; any thread.
StateArrays copy_of(const Replica& replica, std::size_t padded_count);

}  // namespace tg::daemon
