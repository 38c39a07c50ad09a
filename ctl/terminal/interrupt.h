// Ctrl-C as a flag. A command notices it at its next wait, prints what it leaves behind and exits with 130.
// The signal handler is the process's; main thread only.
#pragma once

namespace tg::ctl {

void catch_interrupt();
bool interrupted();
void clear_interrupt();  // for work that is left to do after it; the next Ctrl-C counts again
// Returns false if interrupted before or during the sleep.
bool sleep_unless_interrupted(int milliseconds);

}  // namespace tg::ctl
