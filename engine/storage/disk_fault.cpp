#include "engine/storage/disk_fault.h"

#include <utility>

namespace tg::engine {
namespace {

DiskFault& installed() {
  static DiskFault fault;
  return fault;
}

}  // namespace

void set_disk_fault(DiskFault fault) { installed() = std::move(fault); }

int disk_fault(DiskCall call) { return installed() ? installed()(call) : 0; }

}  // namespace tg::engine
