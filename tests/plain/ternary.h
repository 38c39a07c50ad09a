// TernGrad, Wen et al., NIPS 2017: what a member announces, what all share, the codes and what they add up to. Made of
// the scalar pieces of kernels.h; the whole rule for a step, and its parts for callers that need them one by one.
#pragma once

#include "tests/plain/rule.h"

namespace tg::plain {

struct TernaryOptions {
  float clip_sigma = 2.5F;   // c of eq. (21); 0 = off
  bool repo_recipe = false;  // as the authors' code: the scaler is c * sigma, and all clip at the shared one
  bool shared = true;        // scalers, eq. (4); else each member has its own
  std::size_t bucket = 0;    // elements of a segment that have a scaler of their own; 0 = all of it (by layer)
  bool global = false;       // one scaler for all segments
};

// Eq. (2) after (21), of a member: its clip bound and its scaler, of so many real elements.
kernels::Scale announce(const TernaryOptions& options, const kernels::Statistics& statistics, std::size_t elements);
// The statistics of a whole segment: those of every 2^19 elements, joined in order.
kernels::Statistics statistics_of(const kernels::Kernels& kernels, std::span<const float> gradient);
// Eq. (4): what each member codes by, of what all announced.
void share(const TernaryOptions& options, std::span<kernels::Scale> scales);
// Eq. (1), (3): -1, 0, 1. `first`: the index within the segment of gradient[0].
void ternarize(const Round& round, const kernels::DrawKey& key, std::span<const float> gradient, std::size_t first,
               const kernels::Scale& scale, std::span<int> codes);
// Each rounded to float on its own: s'/N times the sum of the codes; or, without a shared scaler, 1/N times the sum, in
// rank order, of what each member's codes stand for.
void mean_of_codes(const TernaryOptions& options, const Codes& codes, std::span<const kernels::Scale> scales,
                   std::span<float> mean);

class TernGrad final : public SegmentRule {
 public:
  explicit TernGrad(const TernaryOptions& options) : options_(options) {}
  Bits mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
            std::span<float> mean) override;
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;

 private:
  std::vector<kernels::Scale> scales_of(const Round& round, std::size_t elements, Gradients gradients) const;

  const TernaryOptions options_;
  std::vector<kernels::Scale> global_;  // by rank, of this step
};

}  // namespace tg::plain
