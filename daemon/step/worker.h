// Carries out what Exchange decides, on one thread: the kernels' part of a member's step.
//
//   measure      gradient of a bucket -> statistics (eq. (2), (21))
//   contribute   gradient -> codes (eq. (1), (3)) -> payload written into a frame
//   reduce       all members' payloads, own codes -> exact integer sums (floats: in rank order) -> sent -> applied;
//                if no one needs the sums, from the codes straight into the update
//   apply        the owner's total -> optimizer -> the other half of the replica's double buffer
//
// Where the replica keeps no state, nothing is applied, and what only an update would read is not read.
//
// A chunk's planes and sums stay in cache from the first of these verbs to the last: receiving and updating costs one
// pass over the parameters. A member has one Worker for each thread that works for it: they share a SharedStep, write
// disjoint parts of the Replica, and each owns its tensor kernels and the scratch of one chunk. Gradient and state are
// touched by the tensor kernels alone, wherever they live; codes, sums and payloads are in host memory. What came of a
// task is its TaskResult, for the thread that owns the Exchange: it is all there when the task is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/exchange/layout.h"
#include "daemon/exchange/scalers.h"
#include "daemon/exchange/work.h"
#include "daemon/step/float_payload.h"
#include "daemon/step/payload.h"
#include "daemon/step/replica.h"
#include "engine/segment.h"
#include "kernels/base/aligned_array.h"
#include "kernels/codec_kernels.h"
#include "kernels/tensor_kernels.h"
#include "schema/frame/frame.h"
#include "schema/step.h"

namespace tg::daemon {

// Threads that execute a member's tasks: as many as compute, up to where memory is the limit. One is the node's own;
// several are helpers, and the node's own only takes events and hands out.
inline constexpr std::size_t kMaxWorkers = 8;
static_assert(kMaxWorkers <= schema::kMaxExchangeThreads, "a vote can say how many");
constexpr std::size_t workers_for(std::uint64_t threads) {
  return threads < 2 ? 1 : threads < kMaxWorkers ? static_cast<std::size_t>(threads) : kMaxWorkers;
}

constexpr std::size_t helpers_of(std::size_t workers) { return workers < 2 ? 0 : workers; }

// The codes of a task of a segment.
struct CodeCounts {
  std::size_t segment = 0;
  std::uint64_t elements = 0;  // real ones
  std::uint64_t nonzeros = 0;  // nonzero codes among them
};

// The traffic of one step, and its codes.
struct StepTraffic {
  std::uint64_t contribution_bytes = 0;  // payload of codes or floats that were sent, one copy of every chunk
  std::uint64_t contribution_elements = 0;
  std::vector<CodeCounts> codes;  // contributed codes, task by task
  void add(const StepTraffic& other);
};

// A frame of a chunk, ready to leave for every rank in `to`.
struct MadeFrame {
  std::size_t chunk = 0;
  std::vector<Rank> to;
  schema::SharedFrame frame;
  std::size_t payload_bytes = 0;
};

struct TaskResult {
  std::vector<kernels::Statistics> statistics;  // Measure: of its slices
  MadeFrame contribution;                       // Contribute
  std::uint64_t sent_bytes = 0;                 // Contribute, Reduce: payload, to all its receivers
  std::optional<Rank> broken;                   // Reduce, Apply: whose payload breaks its format
  StepTraffic traffic;
};

// What all workers of a member share in a step. Set at its beginning, before any task is in flight; the codes of a
// chunk are written by its contribute and read by its reduce.
struct SharedStep {
  const Layout* layout = nullptr;
  Round round;
  kernels::ConstFloats gradients;
  kernels::Update update;  // scale and weight_decay are each part's own
  // Own codes of the whole model between contribute and reduce, in a direct exchange of several.
  AlignedArray<std::uint64_t> nonzero, negative;

  void begin_round(const engine::SegmentTable& segments, const Layout& layout, Round round,
                   kernels::ConstFloats gradients, const kernels::Update& update);
  static std::size_t bytes(const engine::SegmentTable& segments, const Layout& layout);
};

class Worker {
 public:
  struct Options {
    schema::FrameHeader header;  // run and view; the step is filled in
    std::uint32_t seat = 0;      // in the draws
    std::size_t members = 1;
    std::uint64_t seed = 0;
    float outside_weight_decay = 0;  // 0 = the decay is inside the gradient already
    bool host_accessible = true;
  };
  // What is given by reference outlives the worker.
  Worker(const Options& options, std::unique_ptr<kernels::TensorKernels> tensors, const kernels::CodecKernels& codec,
         const engine::SegmentTable& segments, SharedStep& shared, const Scalers& scalers, Replica& replica,
         schema::FramePool& pool);

  // A Reduce's total is handed to send as soon as it is made, on this thread, before it is applied here.
  using Send = std::function<void(MadeFrame total)>;
  TaskResult execute(const Task& task, const Send& send);

  static std::size_t bytes(const Layout& layout);  // one worker's fixed buffers, in host memory
  // Memory that its tensor kernels keep in a memory space that the host cannot address: the planes of all members, and
  // the sums or the floats of the longest chunk.
  static std::size_t room_bytes(const Layout& layout);

 private:
  using Contributions = Per<Rank, std::optional<ReceivedChunk>>;
  void prepare_buffers();
  TaskResult execute(const Measure& work);
  TaskResult execute(const Contribute& work);
  TaskResult execute(const Reduce& work, const Send& send);
  TaskResult execute(const Apply& work);
  kernels::Planes own_codes(const ChunkLayout& chunk);
  kernels::Planes ternarize(const ChunkLayout& chunk, StepTraffic& traffic);
  kernels::ConstPlanes own_codes_now(const ChunkLayout& chunk, StepTraffic& traffic);
  std::optional<Rank> read_codes(const ChunkLayout& chunk, const Contributions& contributions, StepTraffic& traffic);
  std::optional<Rank> apply_codes(const ChunkLayout& chunk, const Contributions& contributions, StepTraffic& traffic);
  bool apply_raw(const ChunkLayout& chunk, const Contributions& contributions, StepTraffic& traffic);
  std::optional<Rank> sum_codes(const ChunkLayout& chunk, const Contributions& contributions,
                                std::span<std::int8_t> sums, StepTraffic& traffic);
  std::optional<Rank> sum_scaled(const ChunkLayout& chunk, const Contributions& contributions, std::span<float> sums,
                                 StepTraffic& traffic);
  std::optional<Rank> sum_floats(const ChunkLayout& chunk, const Contributions& contributions, std::span<float> sums);
  bool reads_sums(const ChunkLayout& chunk) const { return chunk.coded() && layout_->shared_scalers; }
  template <class Write>
  MadeFrame make_frame(std::size_t index, schema::ChunkPhase phase, const std::vector<Rank>& to, std::size_t bound,
                       Write write);
  kernels::Update part_update(const ChunkPart& part, float scale) const;
  float mean_scale(const ChunkPart& part) const;
  void apply_parts(const ChunkLayout& chunk, std::span<const std::int8_t> sums);
  void apply_parts(const ChunkLayout& chunk, std::span<const float> sums);

  const Options options_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  const kernels::CodecKernels& codec_;
  const engine::SegmentTable& segments_;
  SharedStep& shared_;
  const Scalers& scalers_;
  Replica& replica_;
  schema::FramePool& pool_;
  std::optional<FloatPayload> float_payload_;  // where the layout sums floats

  // Scratch, for the chunks of this layout.
  const Layout* layout_ = nullptr;
  std::optional<PayloadCodec> payload_;
  Per<Rank, kernels::ConstPlanes> codes_;             // a chunk's, by member
  std::vector<kernels::ConstPlanes> part_codes_;      // and a part's
  std::vector<std::span<const std::byte>> payloads_;  // the other members'
  AlignedArray<std::uint64_t> nonzero_, negative_;    // one chunk, where this node's codes are not kept
  AlignedArray<std::int8_t> sums_;                    // one chunk
  AlignedArray<float> floats_;                        // one chunk, made when the layout sums floats
};

}  // namespace tg::daemon
