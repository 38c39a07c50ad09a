// The output of tgctl doctor: for people a table of findings, each with its next step, and a matrix of links; for
// programs JSON with stable keys (keys are only ever added within a schema_version). Pure.
#pragma once

#include <string>

#include "schema/control/doctor.h"

namespace tg::ctl {

inline constexpr int kDoctorJsonVersion = 1;

std::string format_diagnosis(const schema::Diagnosis& diagnosis);
std::string format_diagnosis_json(const schema::Diagnosis& diagnosis);
// No check failed.
bool all_pass(const schema::Diagnosis& diagnosis);
// "checking 4 nodes (about 14 s; ...)".
std::string examination_outlook(std::size_t nodes, std::uint64_t seconds);

}  // namespace tg::ctl
