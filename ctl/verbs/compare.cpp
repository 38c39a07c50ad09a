#include "ctl/fetch/part_file.h"
#include "ctl/format/comparison.h"
#include "ctl/report/comparison_page.h"
#include "ctl/report/run_source.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int compare(Client& client, const Command& command) {
  if (!command.output.empty() && command.more_operands.size() + 1 > kMaxCurvesOfAChart)
    return fail({ErrorKind::kUsage, "a page compares at most " + std::to_string(kMaxCurvesOfAChart) +
                                        " runs; name fewer, or leave out -o"});
  if (const Status free = check_writable(command.output, command.force); !free) return fail(free.error());
  std::vector<schema::RunStatus> runs;
  std::vector<Curves> curves;
  std::vector<std::string> names = command.more_operands;
  names.insert(names.begin(), command.operand);
  for (const std::string& name : names) {
    const Result<schema::MeshStatus> mesh = ask_mesh(client, name, schema::Pick::kNewest);
    if (!mesh) return fail(mesh.error());
    runs.push_back(mesh->runs.front());
    if (command.output.empty()) continue;
    RunSource source(client, runs.back().id, RunSource::choose_node(mesh->node, runs.back()));
    if (const Status read = source.read_metrics(); !read) return fail(read.error());
    curves.push_back(source.curves());
  }
  if (!command.output.empty()) {
    if (const Status written = write_file(command.output, comparison_page(runs, curves)); !written)
      return fail(written.error());
    print(command.output + "\n");
    return kOk;
  }
  print(format_comparison(runs, data_columns()));
  return kOk;
}

}  // namespace tg::ctl
