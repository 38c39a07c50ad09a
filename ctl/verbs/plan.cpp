#include "ctl/fetch/part_file.h"
#include "ctl/plan/plan_picture.h"
#include "ctl/plan/plan_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kMeasureMs = 60'000;  // a node that has not measured itself does so first

}  // namespace

int plan(Client& client, const Command& command, const schema::JobSpec& job) {
  const schema::ForecastRequest request{schema::canonical_job(job), command.nodes, command.link_mbps, command.cores};
  const Result<schema::ForecastReply> reply =
      Client::as<schema::ForecastReply>(client.ask_with_probes(request, kMeasureMs));
  if (!reply) return fail(reply.error());
  if (!command.svg.empty())
    if (const Status written = write_file(command.svg, draw_forecast(*reply)); !written) return fail(written.error());
  print(command.json ? format_forecast_json(*reply) : format_forecast(*reply));
  if (reply->measured_now)
    print_note(reply->node + " had no current measurement of itself and made one; tgctl bench repeats it");
  if (!command.svg.empty()) print_note("picture: " + command.svg);
  return kOk;
}

}  // namespace tg::ctl
