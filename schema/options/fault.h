// A fault that a test asks a node for, at a named point of a run: `fault = kill@reduce:12`, `hang@backward:3`,
// `flip@forward:7`. Values; the daemon carries them out (daemon/step/threads/fault_injection.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/control/control.h"

namespace tg::schema {

enum class FaultKind : std::uint8_t { kKill, kHang, kFlip };
constexpr auto words_of(FaultKind) { return words("kill", "hang", "flip"); }

struct Fault {
  FaultKind kind = FaultKind::kKill;
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;
  bool operator==(const Fault&) const = default;
};

// KIND@PHASE:STEP; a phase of two words is written with a dash or a space.
Result<Fault> parse_fault(std::string_view text);
std::string format_fault(const Fault& fault);

}  // namespace tg::schema
