// Carries out what Exchange decides: the kernels' side of a step on one member.
//
//   measure      gradient of a bucket -> statistics -> clip bounds and local scalers (eq. (2), section 3.2)
//   contribute   gradient -> codes (eq. (1), (3)) -> payload written into a frame -> sent
//   reduce       all members' payloads, the own codes -> exact integer sums (floats: in rank order) -> sent -> applied;
//                where nobody wants the sums, from the codes straight into the update
//   apply        the owner's total -> optimizer -> the other half of the replica's double buffer
//
// A chunk's planes and sums stay in cache from the first of these verbs to the last: receiving and updating costs one
// pass over the parameters. What was sent, applied or broken is told to the Exchange.
// Owns the scratch of one chunk, and in a direct exchange the own codes of the step; reads the gradient, writes the
// Replica. One thread, the one that owns the Exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/exchange/exchange.h"
#include "daemon/exchange/payload.h"
#include "daemon/exchange/replica.h"
#include "engine/segment.h"
#include "kernels/kernels.h"
#include "schema/frame.h"

namespace tg::daemon {

// What one step put on the wire and into the codes.
struct StepTraffic {
  std::uint64_t contribution_bytes = 0;  // payload of the own codes or floats that were sent, one copy of every chunk
  std::uint64_t contribution_elements = 0;
  std::uint64_t elements = 0;  // real ternary elements contributed
  std::uint64_t nonzeros = 0;  // nonzero codes among them
};

class Worker {
 public:
  // frame goes to every rank in `to`; it may be shared, nobody writes to it again.
  using Send = std::function<void(const std::vector<Rank>& to, schema::SharedFrame frame)>;
  struct Options {
    Rank self = 0;
    std::size_t members = 1;
    std::uint64_t run_key = 0;
    std::uint32_t view = Membership::kView;
    std::uint64_t seed = 0;
    double clip_sigma = 2.5;
    bool repo_recipe = false;        // scaler = c*sigma even above max|g|; clipping by the shared scaler
    float outside_weight_decay = 0;  // 0 = the decay is inside the gradient already
  };
  Worker(const Options& options, const kernels::Kernels& kernels, const engine::SegmentTable& segments,
         Replica& replica, schema::FramePool& pool, Send send);

  // The step's inputs stay alive until its commit. update: scale and weight_decay are filled here.
  void begin_step(const Plan& plan, std::uint64_t step, std::span<const float> gradients,
                  const kernels::Update& update);
  LocalBucket measure(std::size_t bucket);
  void carry_out(const Contribute& work, Exchange& exchange);
  void carry_out(const Reduce& work, Exchange& exchange);
  void carry_out(const Apply& action, Exchange& exchange);
  const StepTraffic& traffic() const { return traffic_; }

  static std::size_t bytes(const engine::SegmentTable& segments, const Plan& plan);  // of the fixed buffers

 private:
  using Contributions = std::vector<std::optional<ReceivedChunk>>;
  void prepare_buffers(const Plan& plan);
  bool keeps_codes() const { return !plan_->sharded() && plan_->members > 1; }
  kernels::Planes own_codes(const ChunkPlan& chunk);
  kernels::Planes ternarize(const ChunkPlan& chunk, const Exchange& exchange);
  std::optional<Rank> read_codes(const ChunkPlan& chunk, const Contributions& contributions, const Exchange& exchange);
  std::optional<Rank> apply_codes(const ChunkPlan& chunk, const Contributions& contributions, const Exchange& exchange);
  std::optional<Rank> sum_codes(const ChunkPlan& chunk, const Contributions& contributions, const Exchange& exchange,
                                std::span<std::int8_t> sums);
  std::optional<Rank> sum_scaled(const ChunkPlan& chunk, const Contributions& contributions, const Exchange& exchange,
                                 std::span<float> sums);
  std::optional<Rank> sum_floats(const ChunkPlan& chunk, const Contributions& contributions, std::span<float> sums);
  void add_floats(GradientFormat format, std::span<const std::byte> addend, std::span<float> sums) const;
  std::span<const std::byte> own_floats(const ChunkPlan& chunk);
  PayloadCodec::Written write_floats(GradientFormat format, std::span<const float> values,
                                     std::span<std::byte> payload) const;
  bool read_floats(const ChunkPlan& chunk, const schema::Chunk& received, std::span<float> values) const;
  bool reads_sums(const ChunkPlan& chunk) const { return chunk.ternary() && plan_->shared_scalers; }
  template <class Write>
  std::size_t send(std::size_t index, schema::ChunkPhase phase, std::size_t bound, const std::vector<Rank>& to,
                   Write write);
  kernels::Update part_update(const ChunkPart& part, float scale) const;
  float mean_scale(const ChunkPart& part, const Exchange& exchange) const;
  void apply_parts(const ChunkPlan& chunk, std::span<const std::int8_t> sums, const Exchange& exchange);
  void apply_parts(const ChunkPlan& chunk, std::span<const float> sums);

  const Options options_;
  const kernels::Kernels& kernels_;
  const engine::SegmentTable& segments_;
  Replica& replica_;
  schema::FramePool& pool_;
  const Send send_;

  const Plan* plan_ = nullptr;
  std::uint64_t step_ = 0;
  std::span<const float> gradients_;
  kernels::Update update_;
  std::vector<float> clips_;  // by segment
  std::optional<PayloadCodec> codec_;
  std::vector<kernels::ConstPlanes> codes_, part_codes_;  // of all members, a chunk's and a part's
  AlignedArray<std::uint64_t> nonzero_, negative_;        // of the whole model in a direct exchange, else of one chunk
  AlignedArray<std::int8_t> sums_;                        // one chunk
  AlignedArray<float> floats_;                            // one chunk, made when the plan sums floats
  AlignedArray<std::byte> halves_;                        // one chunk, the own part in its wire format
  StepTraffic traffic_;
};

}  // namespace tg::daemon
