#include "schema/options/shown_job.h"

namespace tg::schema {

void show_job(const JobSpec& job, RunStatus& status) {
  status.model = to_word(job.model);
  status.data = to_word(job.data);
  status.gradients = to_word(job.gradients);
  status.last_layer = to_word(job.gradients == GradientFormat::kTernary ? resolved_last_layer(job) : job.gradients);
  status.settings = changed_keys(job, kMostSettingsBytes);
}

}  // namespace tg::schema
