#include "daemon/forecast/bench/bench_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/storage/atomic_file.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

// What the file says of each.
namespace tg::schema {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelRate, kernel, rate)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComputeRate, model, batch, seconds_per_sample, gflops)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BenchReply, node, build, kernels, measured_ms, members, cores, threads, link_mbps,
                                   round_trip_seconds, device, math, codec, compute)

}  // namespace tg::schema

namespace tg::daemon {
namespace {

using nlohmann::json;

// Empty where they are the same.
std::string difference(const schema::BenchReply& then, const schema::BenchReply& now) {
  std::string text;
  const auto compare = [&text](const char* what, const std::string& before, const std::string& after) {
    if (before == after) return;
    const auto word = [](const std::string& name) { return name.empty() ? "none" : name; };
    text += (text.empty() ? "" : ", ") + std::string(what) + word(before) + " then, " + word(after) + " now";
  };
  compare("device ", then.device, now.device);
  compare("math ", then.math, now.math);
  compare("kernels ", then.kernels, now.kernels);
  compare("cores ", std::to_string(then.cores), std::to_string(now.cores));
  compare("compute threads ", std::to_string(then.threads), std::to_string(now.threads));
  compare("nodes ", std::to_string(then.members), std::to_string(now.members));
  return text;
}

}  // namespace

std::string bench_path(const std::string& state_dir) { return state_dir + "/bench.json"; }

Status write_bench(const std::string& path, const schema::BenchReply& bench) {
  json content = bench;
  content["schema_version"] = kBenchSchemaVersion;
  content["measured"] = format_utc(bench.measured_ms);
  const std::string text = content.dump(2) + "\n";
  engine::AtomicFile file(path);
  if (const Status status = file.open(); !status) return status;
  if (const Status status = file.write(text.data(), text.size()); !status) return status;
  return file.commit();
}

KeptBench read_bench(const std::string& path, const schema::BenchReply& now) {
  std::ifstream file(path, std::ios::binary);
  std::string text(schema::kMostRecordBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty() || text.size() > schema::kMostRecordBytes) return {};
  const json content = json::parse(text, nullptr, false);
  try {
    if (content.is_discarded()) return {};
    if (const int version = content.at("schema_version").get<int>(); version != kBenchSchemaVersion)
      return {std::nullopt, "its file's version " + std::to_string(version) + " then, " +
                                std::to_string(kBenchSchemaVersion) + " now"};
    auto bench = content.get<schema::BenchReply>();
    if (std::string outdated = difference(bench, now); !outdated.empty()) return {std::nullopt, std::move(outdated)};
    bench.saved = path;
    return {std::move(bench), {}};
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace tg::daemon
