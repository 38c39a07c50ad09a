#include "daemon/forecast/codec_costs.h"

namespace tg::daemon {

CodecSeconds codec_parts(const Plan& plan, const CodecCosts& costs, double zeros) {
  const auto coding = static_cast<std::size_t>(plan.coding);
  const double others = static_cast<double>(plan.members - 1), members = static_cast<double>(plan.members);
  const double here = plan.sharded() ? 1 / members : 1;  // share of the chunks that are summed here
  const double sent = plan.sharded() ? others / members : plan.members > 1 ? 1 : 0;
  double elements = 0;
  for (const ChunkPlan& chunk : plan.chunks) elements += static_cast<double>(chunk.size());
  CodecSeconds seconds;
  seconds.encode = elements * (costs.statistics + costs.ternarize + sent * costs.encode_codes[coding]);
  seconds.decode = elements * here * (others * costs.decode_codes[coding] + members * costs.accumulate);
  seconds.apply = elements * costs.apply;
  if (plan.sharded()) {
    seconds.encode += elements * here * costs.encode_sums[coding];
    seconds.decode += elements * (1 - here) * costs.decode_sums[coding];
  }
  seconds.network = predict_traffic(plan, zeros).sent_bits / 8 * 2 * costs.per_byte;
  return seconds;
}

double codec_seconds(const Plan& plan, const CodecCosts& costs, double zeros) {
  return codec_parts(plan, costs, zeros).total();
}

}  // namespace tg::daemon
