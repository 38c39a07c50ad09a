// Lets tests make the disk fail: called before each system call of AtomicFile. Set before any thread writes.
#pragma once

#include <cstdint>
#include <functional>

namespace tg::engine {

enum class DiskCall : std::uint8_t { kOpen, kWrite, kFsync, kRename };

// Returns the errno that the call shall fail with instead of being made; 0 = none. It may also not return. Any thread.
using DiskFault = std::function<int(DiskCall)>;
void set_disk_fault(DiskFault fault);
int disk_fault(DiskCall call);

}  // namespace tg::engine
