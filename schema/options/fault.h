// A fault that a test injects into a node, at a named point of a run: `fault = kill@reduce:12`, `hang@backward:3`,
// `flip@forward:7`; or at the n-th disk call of a kind since the process began: `kill@rename:2`, `fail@fsync:3` (that
// call alone, EIO), `full@write:1` (no space from that call on); or in a view change: `kill@accept:1`, the one that
// leaves view 1. Values; the daemon applies them (daemon/step/threads/fault_injection.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/control/control.h"

namespace tg::schema {

// pause: the process stops (SIGSTOP) until it is sent SIGCONT.
enum class FaultKind : std::uint8_t { kKill, kHang, kPause, kFlip, kFail, kFull };
constexpr auto words_of(FaultKind) { return words("kill", "hang", "pause", "flip", "fail", "full"); }

// The same points as in engine/storage/disk_fault.h.
enum class DiskPoint : std::uint8_t { kOpen, kWrite, kFsync, kRename };
constexpr auto words_of(DiskPoint) { return words("open", "write", "fsync", "rename"); }

// Between two actions of a view change (daemon/membership/view_change.h).
enum class ChangePoint : std::uint8_t {
  kPromise,  // the promise is on disk, but not sent
  kAccept,   // the acceptance is on disk, but not sent
  kDecide,   // a quorum has accepted, or the decision has arrived; it is not on disk
  kDecided,  // the decision is on disk, but not sent
  kInstall,  // the decision is sent, as far as the sockets took it, but not applied
};
constexpr auto words_of(ChangePoint) { return words("promise", "accept", "decide", "decided", "install"); }

struct Fault {
  FaultKind kind = FaultKind::kKill;
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;                  // or the number of the disk call, from 1; or of the view that is left
  std::optional<DiskPoint> disk = {};      // set for a disk fault, which has no phase
  std::optional<ChangePoint> change = {};  // set for a fault in a view change, which has no phase
  bool operator==(const Fault&) const = default;
};

// KIND@PHASE:STEP, KIND@CALL:COUNT or KIND@POINT:VIEW; a phase of two words is written with a dash or a space.
Result<Fault> parse_fault(std::string_view text);
std::string format_fault(const Fault& fault);

}  // namespace tg::schema
