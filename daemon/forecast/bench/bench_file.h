// state-dir/bench.json: the last measurement of this node, kept for predictions. Replaced whole or not at all. A file
// that is missing or damaged counts as none. So does one of another schema_version, or measured under other conditions;
// then `outdated` says so. One thread.
#pragma once

#include <optional>
#include <string>

#include "kernels/base/status.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

inline constexpr int kBenchSchemaVersion = 6;

std::string bench_path(const std::string& state_dir);
Status write_bench(const std::string& path, const schema::BenchReply& bench);

struct KeptBench {
  std::optional<schema::BenchReply> bench;
  std::string outdated;  // why a measurement that is there was not taken: "compute threads 1 then, 2 now"; else empty
};
// now: what a measurement would begin with (Bench::Options::about). It holds for the same kernels, cores, threads,
// device and math; with another number of peers the link towards all of them at once is another.
KeptBench read_bench(const std::string& path, const schema::BenchReply& now);

}  // namespace tg::daemon
