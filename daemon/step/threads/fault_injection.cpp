#include "daemon/step/threads/fault_injection.h"

#include <unistd.h>

#include <csignal>

namespace tg::daemon {

void FaultInjection::execute(schema::Fault at) const {
  if (!fault_) return;
  at.kind = fault_->kind;
  if (at != *fault_) return;
  if (at.kind == schema::FaultKind::kKill) std::raise(SIGKILL);
  if (at.kind == schema::FaultKind::kPause) ::kill(::getpid(), SIGSTOP);  // all threads
  while (at.kind == schema::FaultKind::kHang) pause();                    // a computation that never comes back
}

}  // namespace tg::daemon
