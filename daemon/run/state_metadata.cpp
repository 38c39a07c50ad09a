#include "daemon/run/state_metadata.h"

#include "daemon/store/artefacts.h"
#include "daemon/store/state_facts.h"

namespace tg::daemon {

std::map<std::string, std::string> saved_metadata(const RunRecord& record, const schema::StateId& state,
                                                  const Prepared& prepared) {
  std::map<std::string, std::string> all = to_metadata({record.id, record.key, state, record.spec, record.status});
  if (!prepared.description.empty()) all[kDescription] = prepared.description;
  if (prepared.replica->keeps_best() && record.status.best_step > 0)
    all[kBestStep] = std::to_string(record.status.best_step);
  return all;
}

StateArrays saved_arrays(StateArrays arrays, const schema::RunStatus& status) {
  if (status.best_step == 0) arrays.best = arrays.best_statistics = {};
  return arrays;
}

}  // namespace tg::daemon
