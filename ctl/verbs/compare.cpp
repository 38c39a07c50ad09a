#include "ctl/format/comparison.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int compare(Client& client, const Command& command) {
  std::vector<schema::RunStatus> runs;
  std::vector<std::string> names = command.more_operands;
  names.insert(names.begin(), command.operand);
  for (const std::string& name : names) {
    Result<schema::RunStatus> run = ask_run(client, name, schema::Pick::kNewest);
    if (!run) return fail(run.error());
    runs.push_back(*std::move(run));
  }
  print(format_comparison(runs, data_columns()));
  return kOk;
}

}  // namespace tg::ctl
