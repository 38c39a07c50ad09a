// state-dir/bench.json: the last measurement of this node, kept for predictions. Replaced whole or not at all; a file
// that is missing, damaged, of another schema_version or of another instruction set is as none. One thread.
#pragma once

#include <optional>
#include <string>

#include "kernels/base/status.h"
#include "schema/forecast.h"

namespace tg::daemon {

inline constexpr int kBenchSchemaVersion = 2;

std::string bench_path(const std::string& state_dir);
Status write_bench(const std::string& path, const schema::BenchReply& bench);
// kernels: the instruction set in use now.
std::optional<schema::BenchReply> read_bench(const std::string& path, const std::string& kernels);

}  // namespace tg::daemon
