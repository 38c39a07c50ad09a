// Carries out what Exchange decides: the kernels' side of a step on one member.
//
//   measure      gradient of a bucket -> statistics -> clip bounds and local scalers (eq. (2), section 3.2)
//   contribute   gradient -> codes (eq. (1), (3)) -> payload written into a frame -> sent
//   accumulate   a payload, or the own codes -> integer sums (floats: rank-ordered float sums)
//   send_total   sums -> payload -> sent to all
//   apply        sums -> optimizer -> the other half of the replica's double buffer
//
// Owns planes, sums and scratch of one member (sized by the segment table); reads the gradient, writes the Replica. One
// thread, the one that owns the Exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/exchange/exchange.h"
#include "daemon/exchange/replica.h"
#include "engine/segment.h"
#include "kernels/kernels.h"
#include "schema/frame.h"

namespace tg::daemon {

// What one step put on the wire and into the codes.
struct StepTraffic {
  std::uint64_t contribution_bytes = 0;  // payload of the own codes or floats, one copy of every chunk
  std::uint64_t elements = 0;            // real ternary elements contributed
  std::uint64_t nonzeros = 0;            // nonzero codes among them
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
  // Contribute, Accumulate, SendTotal or Apply; false if a payload breaks its format (tell Exchange::bad_payload).
  bool carry_out(const ExchangeAction& action, const Exchange& exchange);
  const StepTraffic& traffic() const { return traffic_; }

  static std::size_t bytes(const engine::SegmentTable& segments);  // of the fixed buffers

 private:
  bool carry_out_one(const Contribute& action, const Exchange& exchange);
  bool carry_out_one(const Accumulate& action, const Exchange& exchange);
  bool carry_out_one(const SendTotal& action, const Exchange& exchange);
  bool carry_out_one(const Apply& action, const Exchange& exchange);
  template <class Other>
  bool carry_out_one(const Other&, const Exchange&) {
    return true;
  }
  kernels::Planes planes(const ChunkPlan& chunk);
  schema::FrameHeader header() const;
  std::span<const std::byte> gradient_bytes(const ChunkPlan& chunk) const;
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
  AlignedArray<std::uint64_t> nonzero_, negative_;
  AlignedArray<std::int8_t> sums_;
  AlignedArray<std::int8_t> received_sums_;  // one chunk
  AlignedArray<float> float_sums_;           // flat, made when a plan has float chunks
  AlignedArray<float> received_floats_;      // one chunk
  StepTraffic traffic_;
};

}  // namespace tg::daemon
