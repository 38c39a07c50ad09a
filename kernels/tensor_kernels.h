// The tensor kernels: everything that is done to a run's gradient and state, wherever they live (memory_space.h).
// Floats are in the memory space; planes, sums, payloads and results are in host memory. What each function computes,
// bit for bit the same in every memory space, is described at the function of the same name in host_kernels.h.
//
// Threads. One object serves one thread at a time; several objects may work at the same time, on parts that do not
// overlap. A call may be asynchronous inside: what it writes to host memory is complete when it returns, what it writes
// to its memory space is complete for the next call of any object of the same memory space.
// Errors. A range that does not lie in this memory space is our bug and may stop the process. A device that fails is a
// std::runtime_error that names the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/memory_span.h"
#include "kernels/types.h"

namespace tg::kernels {

// Optimizer state of a range, as StateSpan is; unused slots are empty. What is read and what is written never overlap.
struct StateFloats {
  Floats parameters, slot0, slot1;
};
struct ConstStateFloats {
  ConstFloats parameters, slot0, slot1;
};

class TensorKernels {
 public:
  virtual ~TensorKernels() = default;

  // Copies bytes to or from floats, four bytes a float as on the wire. The bytes may be anywhere in host memory.
  virtual void copy_in(std::span<const std::byte> from, Floats to) = 0;
  virtual void copy_out(ConstFloats from, std::span<std::byte> to) = 0;

  // One result for each slice: a device measures all of them at once.
  virtual void statistics(std::span<const ConstFloats> slices, std::span<Statistics> results) = 0;
  virtual void ternarize(ConstFloats gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                         Planes codes) = 0;

  virtual void apply_sums(const Update& update, std::span<const std::int8_t> sums, const ConstStateFloats& from,
                          const StateFloats& to) = 0;
  virtual void apply_floats(const Update& update, std::span<const float> sums, const ConstStateFloats& from,
                            const StateFloats& to) = 0;
  // apply_sums of the sum of all members' codes.
  virtual void apply_planes(const Update& update, std::span<const ConstPlanes> codes, const ConstStateFloats& from,
                            const StateFloats& to) = 0;
  // Optional: apply_planes that reads raw payloads itself, in one pass. Called only if reads_payloads() is true.
  // False if a payload breaks its format: `to` is unspecified then.
  virtual bool reads_payloads() const { return false; }
  virtual bool apply_payloads(const Update&, const Received&, const ConstStateFloats&, const StateFloats&) {
    return false;
  }

  virtual void add_scaled(ConstFloats parameters, float factor, Floats gradient) = 0;
  virtual void average(ConstFloats parameters, float rate, Floats average) = 0;
  virtual std::uint64_t digest(ConstFloats values, std::uint64_t first, std::uint64_t salt) = 0;
};

}  // namespace tg::kernels
