// What tgctl doctor found: for people a table of findings, each with its fix, and a matrix of who reaches whom; for
// programs JSON with stable keys (keys are only ever added within a schema_version). Pure.
#pragma once

#include <string>

#include "schema/control/doctor.h"

namespace tg::ctl {

inline constexpr int kDoctorJsonVersion = 1;

std::string format_diagnosis(const schema::Diagnosis& diagnosis);
std::string format_diagnosis_json(const schema::Diagnosis& diagnosis);
// No finding says warn or fail.
bool all_pass(const schema::Diagnosis& diagnosis);
// "examines 4 nodes, which takes about 13 s: ...".
std::string examination_outlook(std::size_t nodes, std::uint64_t seconds);

}  // namespace tg::ctl
