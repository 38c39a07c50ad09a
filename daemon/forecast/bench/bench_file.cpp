#include "daemon/forecast/bench/bench_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/storage/atomic_file.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const schema::BenchReply& bench) {
  Json codec = Json::array(), compute = Json::array();
  for (const schema::KernelRate& rate : bench.codec) codec.push_back({{"kernel", rate.kernel}, {"rate", rate.rate}});
  for (const schema::ComputeRate& rate : bench.compute)
    compute.push_back({{"model", rate.model},
                       {"batch", rate.batch},
                       {"seconds_per_sample", rate.seconds_per_sample},
                       {"gflops", rate.gflops}});
  return {{"schema_version", kBenchSchemaVersion},
          {"node", bench.node},
          {"build", bench.build},
          {"kernels", bench.kernels},
          {"measured", format_utc(bench.measured_ms)},
          {"measured_ms", bench.measured_ms},
          {"members", bench.members},
          {"cores", bench.cores},
          {"threads", bench.threads},
          {"link_mbps", bench.link_mbps},
          {"round_trip_seconds", bench.round_trip_seconds},
          {"device", bench.device},
          {"math", bench.math},
          {"codec", std::move(codec)},
          {"compute", std::move(compute)}};
}

schema::BenchReply bench_of(const Json& json) {
  schema::BenchReply bench;
  bench.node = json.at("node").get<std::string>();
  bench.build = json.at("build").get<std::string>();
  bench.kernels = json.at("kernels").get<std::string>();
  bench.measured_ms = json.at("measured_ms").get<std::int64_t>();
  bench.members = json.at("members").get<std::uint64_t>();
  bench.cores = json.at("cores").get<std::uint64_t>();
  bench.threads = json.at("threads").get<std::uint64_t>();
  bench.link_mbps = json.at("link_mbps").get<double>();
  bench.round_trip_seconds = json.at("round_trip_seconds").get<double>();
  bench.device = json.at("device").get<std::string>();
  bench.math = json.at("math").get<std::string>();
  for (const Json& rate : json.at("codec"))
    bench.codec.push_back({rate.at("kernel").get<std::string>(), rate.at("rate").get<double>()});
  for (const Json& rate : json.at("compute"))
    bench.compute.push_back({rate.at("model").get<std::string>(), rate.at("batch").get<std::uint64_t>(),
                             rate.at("seconds_per_sample").get<double>(), rate.at("gflops").get<double>()});
  return bench;
}

// Empty where they are the same.
std::string difference(const schema::BenchReply& bench, const BenchConditions& now) {
  std::string text;
  const auto compare = [&text](const char* what, const auto& then, const auto& is, const auto& shown) {
    if (then != is)
      text += (text.empty() ? "" : ", ") + std::string(what) + shown(then) + " then, " + shown(is) + " now";
  };
  const auto number = [](std::uint64_t count) { return std::to_string(count); };
  const auto word = [](const std::string& name) { return name.empty() ? std::string("none") : name; };
  compare("device ", bench.device, now.device, word);
  compare("math ", bench.math, now.math, word);
  compare("kernels ", bench.kernels, now.kernels, word);
  compare("cores ", bench.cores, now.cores, number);
  compare("compute threads ", bench.threads, now.threads, number);
  compare("nodes ", bench.members, now.members, number);
  return text;
}

}  // namespace

std::string bench_path(const std::string& state_dir) { return state_dir + "/bench.json"; }

Status write_bench(const std::string& path, const schema::BenchReply& bench) {
  const std::string text = json_of(bench).dump(2) + "\n";
  engine::AtomicFile file(path);
  if (const Status status = file.open(); !status) return status;
  if (const Status status = file.write(text.data(), text.size()); !status) return status;
  return file.commit();
}

KeptBench read_bench(const std::string& path, const BenchConditions& now) {
  std::ifstream file(path, std::ios::binary);
  std::string text(schema::kMostRecordBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty() || text.size() > schema::kMostRecordBytes) return {};
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (json.is_discarded() || json.at("schema_version").get<int>() != kBenchSchemaVersion) return {};
    schema::BenchReply bench = bench_of(json);
    if (std::string outdated = difference(bench, now); !outdated.empty()) return {std::nullopt, std::move(outdated)};
    bench.saved = path;
    return {std::move(bench), {}};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace tg::daemon
