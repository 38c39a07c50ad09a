// Gradients that tgd_lab_record wrote while a model was training, as one step of a run would code them: every segment
// clipped by its own sigma on every member, with the largest of the members' scalers.
#pragma once

#include <string>
#include <vector>

#include "engine/choices.h"
#include "kernels/base/aligned_array.h"
#include "kernels/base/status.h"
#include "tests/bench/codec/subject.h"

namespace tg::kernels {

struct RecordedSubject {
  std::vector<AlignedArray<float>> values;  // one array per file, which the subject's gradients view
  Subject subject;
};

// "{rank}" in the path stands for the member's; without it all members have one gradient.
Result<RecordedSubject> read_recorded_subject(ModelKind kind, const std::string& path);

}  // namespace tg::kernels
