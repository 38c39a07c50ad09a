#include "daemon/step/threads/fault_injection.h"

#include <unistd.h>

#include <csignal>

namespace tg::daemon {

void FaultInjection::reached(schema::Phase phase, std::uint64_t step) const {
  if (is(schema::FaultKind::kKill, phase, step)) std::raise(SIGKILL);
  while (is(schema::FaultKind::kHang, phase, step)) pause();  // a computation that never comes back
}

}  // namespace tg::daemon
