#include "ctl/models/model_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int models(const Command& command) {
  print(command.json ? format_models_json() : format_models());
  return kOk;
}

}  // namespace tg::ctl
