// The work that an exchange requests. Tasks are heavy: they wait until a thread has time, do not depend on each other,
// and may end in any order. Actions are small answers, to be carried out at once and in order. Values; no thread rules
// of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "schema/frame/frame.h"
#include "schema/place.h"
#include "schema/step.h"

namespace tg::daemon {

// A received chunk, with the owner of its payload's memory.
struct ReceivedChunk {
  schema::Chunk chunk;
  std::shared_ptr<const void> keep;
};

// --- tasks ---

struct Slice {
  std::size_t segment = 0;
  std::size_t begin = 0, count = 0;  // flat elements
};

struct Measure {  // the statistics of some slices of a bucket's gradient
  std::size_t bucket = 0;
  std::size_t first = 0;  // index of the first slice within the bucket
  std::vector<Slice> slices;
};
struct Contribute {  // ternarize, encode and send this node's part of a chunk; direct: keep its codes for Reduce
  std::size_t bucket = 0, chunk = 0;
  std::vector<Rank> to;
};
struct Reduce {  // sum all members' contributions in rank order, send the total, apply it
  std::size_t bucket = 0, chunk = 0;
  Per<Rank, std::optional<ReceivedChunk>> contributions;  // this node's is empty
  std::vector<Rank> to;                                   // members that get the total
};
struct Apply {  // the owner's total -> optimizer -> new parameters
  std::size_t bucket = 0, chunk = 0;
  Rank owner;
  ReceivedChunk total;
};
using Task = std::variant<Measure, Contribute, Reduce, Apply>;

inline const char* task_name(const Task& task) {  // a literal
  static constexpr const char* kNames[] = {"measure", "contribute", "reduce", "apply"};
  static_assert(std::variant_size_v<Task> == std::size(kNames));
  return kNames[task.index()];
}
inline std::size_t bucket_of(const Task& task) {
  return std::visit([](const auto& one) { return one.bucket; }, task);
}

// The kind of thread that takes the next task. Statistics come after everything that can be sent, summed or applied;
// but a thread that works alone measures while the link is busy.
enum class ThreadRole : std::uint8_t {
  kOnlyThread,  // there is no other thread
  kIdleThread,  // one of several, with nothing to do
  kBusyThread,  // one of several: the task waits until it has finished its current one
};

// --- actions ---

struct Send {
  std::vector<Rank> to;
  schema::FrameHeader header;
  schema::FrameBody body;
};
struct ConfirmState {  // every member's step frame of this round is in: all of them hold the state before it
  Round round;
  std::uint32_t flags = 0;  // union over members (schema::StepFlags)
};
struct CommitRound {
  Round round;
  std::uint32_t flags = 0;  // union over members (schema::StepFlags)
  double loss_sum = 0;      // over the global batch, added in rank order
  // What batch normalizations measured, the mean over the global batch; without padding, empty for models without.
  std::vector<float> statistics;
};
struct FailRun {
  schema::Fail cause;
};
using ExchangeAction = std::variant<Send, ConfirmState, CommitRound, FailRun>;

}  // namespace tg::daemon
