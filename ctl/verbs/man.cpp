#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int man(const Command& command) {
  print(manual_page(command.operand));
  return kOk;
}

}  // namespace tg::ctl
