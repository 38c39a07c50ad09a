#include "ctl/plan/bench_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kMeasureMs = 60'000;  // some seconds of work, on a machine that has others to do, too

}  // namespace

int bench(Client& client, const Command& command) {
  const Result<schema::BenchReply> reply =
      Client::as<schema::BenchReply>(client.ask_with_probes(schema::BenchRequest{}, kMeasureMs));
  if (!reply) return fail(reply.error());
  print(command.json ? format_bench_json(*reply) : format_bench(*reply));
  return kOk;
}

}  // namespace tg::ctl
