#include "kernels/require.h"

#include "kernels/base/check.h"

namespace tg::kernels {

void require_capacity(std::size_t payload_bytes, std::size_t needed_bytes) {
  TG_CHECK(payload_bytes >= needed_bytes, payload_bytes, needed_bytes);
}

void require_same_size(std::size_t elements, std::size_t other_elements) {
  TG_CHECK(elements == other_elements, elements, other_elements);
}

void require_members(int members) { TG_CHECK(members >= 1 && members <= kMaxMembers, members); }

void require_runs(std::span<const std::size_t> runs, std::size_t elements) {
  std::size_t total = 0;
  for (const std::size_t run : runs) {
    TG_CHECK(run % kBlock == 0 && run <= elements, run, elements);
    total += run;
  }
  TG_CHECK(total == elements, total, elements);
}

void require_received(const Received& received, std::size_t elements) {
  const std::size_t members = received.payloads.size() + received.planes.size();
  TG_CHECK(members <= static_cast<std::size_t>(kMaxMembers), members);
  for (const ConstPlanes& codes : received.planes) {
    require_same_size(elements, codes.nonzero.size() * kWordBits);
    require_same_size(elements, codes.negative.size() * kWordBits);
  }
}

void require_state(OptimizerKind kind, std::size_t elements, const ConstStateSpan& from, const StateSpan& to) {
  require_same_size(elements, from.parameters.size());
  require_same_size(elements, to.parameters.size());
  const int slots = slot_count(kind);
  if (slots == 0) return;
  require_same_size(elements, from.slot0.size());
  require_same_size(elements, to.slot0.size());
  if (slots == 1) return;
  require_same_size(elements, from.slot1.size());
  require_same_size(elements, to.slot1.size());
}

}  // namespace tg::kernels
