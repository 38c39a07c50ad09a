// state-dir/bench.json: the last measurement of this node, kept for predictions. Replaced whole or not at all. A file
// that is missing or damaged counts as none. So does one of another schema_version, or measured under other conditions;
// then `outdated` says so. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/base/status.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

inline constexpr int kBenchSchemaVersion = 6;

std::string bench_path(const std::string& state_dir);
Status write_bench(const std::string& path, const schema::BenchReply& bench);

// What a measurement holds for. With another number of peers the link towards all of them at once is another.
struct BenchConditions {
  std::string kernels;
  std::uint64_t cores = 0, threads = 0, members = 0;
  std::string device = {}, math = {};  // as the reply says them
};
struct KeptBench {
  std::optional<schema::BenchReply> bench;
  std::string outdated;  // why a measurement that is there was not taken: "compute threads 1 then, 2 now"; else empty
};
KeptBench read_bench(const std::string& path, const BenchConditions& now);

}  // namespace tg::daemon
