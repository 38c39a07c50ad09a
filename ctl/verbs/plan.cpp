#include "ctl/plan/plan_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int plan(Client& client, const Command& command, const schema::JobSpec& job) {
  const schema::ForecastRequest request{schema::canonical_job(job), command.nodes, command.link_mbps,
                                        static_cast<double>(command.compute_ms) / 1000};
  const int timeout_ms = static_cast<int>(job.start_timeout_ms) + kPreparationMs;
  const Result<schema::ForecastReply> reply =
      Client::as<schema::ForecastReply>(client.ask_with_probes(request, timeout_ms));
  if (!reply) return fail(reply.error());
  print(command.json ? format_forecast_json(*reply) : format_forecast(*reply));
  return kOk;
}

}  // namespace tg::ctl
