#include "ctl/command_line/completion.h"

#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int completion(const Command& command) {
  print(completion_script(command.operand));
  return kOk;
}

}  // namespace tg::ctl
