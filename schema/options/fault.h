// A fault that a test asks a node for, at a named point of a run: `fault = kill@reduce:12`, `hang@backward:3`,
// `flip@forward:7`; or at the n-th call of a kind to the disk since the process began: `kill@rename:2`, `fail@fsync:3`
// (that call alone, EIO), `full@write:1` (no space from that one on). Values; the daemon carries them out
// (daemon/step/threads/fault_injection.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/control/control.h"

namespace tg::schema {

enum class FaultKind : std::uint8_t { kKill, kHang, kFlip, kFail, kFull };
constexpr auto words_of(FaultKind) { return words("kill", "hang", "flip", "fail", "full"); }

// As engine/storage/disk_fault.h has them.
enum class DiskPoint : std::uint8_t { kOpen, kWrite, kFsync, kRename };
constexpr auto words_of(DiskPoint) { return words("open", "write", "fsync", "rename"); }

struct Fault {
  FaultKind kind = FaultKind::kKill;
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;              // or which call, from 1
  std::optional<DiskPoint> disk = {};  // instead of a phase
  bool operator==(const Fault&) const = default;
};

// KIND@PHASE:STEP or KIND@CALL:COUNT; a phase of two words is written with a dash or a space.
Result<Fault> parse_fault(std::string_view text);
std::string format_fault(const Fault& fault);

}  // namespace tg::schema
