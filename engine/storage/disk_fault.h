// Where tests make the disk fail: asked before each call of AtomicFile to the operating system. Set before any thread
// writes.
#pragma once

#include <cstdint>
#include <functional>

namespace tg::engine {

enum class DiskCall : std::uint8_t { kOpen, kWrite, kFsync, kRename };

// The errno that the call is to fail with instead of being made; 0 = none. It may also not return. Any thread.
using DiskFault = std::function<int(DiskCall)>;
void set_disk_fault(DiskFault fault);
int disk_fault(DiskCall call);

}  // namespace tg::engine
