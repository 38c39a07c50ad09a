#include "daemon/doctor/diagnose.h"

#include <algorithm>

#include "daemon/doctor/findings.h"
#include "daemon/doctor/link_verdicts.h"
#include "daemon/doctor/node_verdicts.h"
#include "schema/limits.h"

namespace tg::daemon {

schema::Diagnosis diagnose(const Survey& survey) {
  Findings findings(survey);
  judge_nodes(survey, findings);
  judge_names(survey, findings);
  judge_ports(survey, findings);
  judge_keys(survey, findings);
  judge_round_trips(survey, findings);
  judge_mtu(survey, findings);
  judge_bandwidth(survey, findings);
  if (examined(survey) > 0) {
    judge_configuration(survey, findings);
    judge_versions(survey, findings);
    judge_clocks(survey, findings);
    judge_data(survey, findings);
    judge_hosts(survey, findings);
  }
  schema::Diagnosis diagnosis;
  diagnosis.node = survey.names[survey.self];
  diagnosis.nodes = survey.names;
  diagnosis.findings = findings.take();
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const auto& a, const auto& b) { return a.check < b.check; });
  if (diagnosis.findings.size() > schema::kMaxFindings) {
    diagnosis.left_out = static_cast<std::uint32_t>(diagnosis.findings.size() - schema::kMaxFindings);
    diagnosis.findings.resize(schema::kMaxFindings);
  }
  diagnosis.reach = matrix_of(survey);
  for (const Seat from : survey.names.places())
    for (const Seat to : survey.names.places()) {
      const schema::LinkFacts* link = link_of(survey, from, to);
      diagnosis.mbps.push_back(link == nullptr ? 0 : static_cast<float>(link->mbps));
      diagnosis.round_trip_micros.push_back(link == nullptr ? 0 : link->round_trip_micros);
    }
  return diagnosis;
}

}  // namespace tg::daemon
