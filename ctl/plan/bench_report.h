// What `bench` prints: for people a table, for programs JSON with stable keys. Pure.
#pragma once

#include <string>

#include "schema/control/forecast.h"

namespace tg::ctl {

inline constexpr int kBenchJsonVersion = 3;

std::string format_bench(const schema::BenchReply& bench);
std::string format_bench_json(const schema::BenchReply& bench);

}  // namespace tg::ctl
