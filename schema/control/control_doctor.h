// Examinations and diagnoses between value (doctor.h) and Cap'n Proto form (doctor.capnp). Used by control.cpp only.
// The take_* functions throw what schema/wire.h says.
#pragma once

#include "schema/control/doctor.h"
#include "schema/doctor.capnp.h"

namespace tg::schema {

void put_examine(wire::ExamineRequest::Builder to, const ExamineRequest& request);
ExamineRequest take_examine(wire::ExamineRequest::Reader from);
void put_examination(wire::Examination::Builder to, const Examination& examination);
Examination take_examination(wire::Examination::Reader from);
void put_diagnosis(wire::Diagnosis::Builder to, const Diagnosis& diagnosis);
Diagnosis take_diagnosis(wire::Diagnosis::Reader from);

}  // namespace tg::schema
