// Ctrl-C as a flag: a verb notices it at its next wait, says what it leaves behind and ends with 130.
// The handler is the process's; everything here is for the main thread.
#pragma once

namespace tg::ctl {

void catch_interrupt();
bool interrupted();
void forget_interrupt();  // for what is still to be done after it; the next one counts again
// False if interrupted before or while sleeping.
bool sleep_unless_interrupted(int milliseconds);

}  // namespace tg::ctl
