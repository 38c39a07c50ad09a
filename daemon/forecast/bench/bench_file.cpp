#include "daemon/forecast/bench/bench_file.h"

#include <span>

#include "engine/storage/safetensors.h"
#include "kernels/base/log.h"
#include "kernels/base/regular_file.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

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
  schema::OrderedJson json = {{"schema_version", kBenchSchemaVersion}, {"measured", format_utc(bench.measured_ms)}};
  json.update(to_json(bench, schema::JsonView::kKept));
  return engine::write_file_atomically(path, json.dump(2) + "\n");
}

KeptBench read_bench(const std::string& path, const schema::BenchReply& now) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file) return {};
  std::string text(schema::kMaxRecordBytes + 1, '\0');
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(text)));
  text.resize(got ? *got : 0);
  if (text.empty() || text.size() > schema::kMaxRecordBytes) return {};
  const auto json = schema::OrderedJson::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("schema_version") || !json["schema_version"].is_number_integer()) return {};
  if (const int version = json["schema_version"].get<int>(); version != kBenchSchemaVersion)
    return {std::nullopt,
            "its file's version " + std::to_string(version) + " then, " + std::to_string(kBenchSchemaVersion) + " now"};
  schema::BenchReply bench;
  std::string problem;
  fields(bench, schema::JsonReader(json, problem, schema::JsonReader::Missing::kError));
  if (!problem.empty()) return {};
  if (std::string outdated = difference(bench, now); !outdated.empty()) return {std::nullopt, std::move(outdated)};
  bench.saved = path;
  return {std::move(bench), {}};
}

}  // namespace tg::daemon
