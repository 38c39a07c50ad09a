// tgd_train_steps MODEL OUT [KEY=VALUE]...: trains a model for some steps by plain SGD on random images, dropout off,
// and writes what PyTorch needs to do the same and to compare (tests/paper/pytorch_models.py):
//
//   OUT/start.safetensors   parameters, and statistics of the first batch, before any step
//   OUT/batches.f32         steps x (batch x C x H x W images), then as many labels as float32
//   OUT/first.safetensors   gradient of the first step's mean loss, and the statistics after it
//   OUT/result.json         shape, classes, batch, rate, graph; logits of the first batch in evaluation, before any
//                           step; the mean losses of all steps
//
// Keys: batch, steps, rate, side (of the images), classes, seed, threads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/cpu/cpu_engine.h"
#include "engine/graph/graph_json.h"
#include "tests/engine/safetensors_files.h"

namespace tg::engine {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  std::fprintf(stderr, "tgd_train_steps: %s\n", problem.c_str());
  std::exit(2);
}

void require(const Status& status) {
  if (!status.ok()) fail(status.error().message);
}

Batch draw_batch(const Model& model, int count, std::mt19937_64& random) {
  std::normal_distribution<float> pixel;
  Batch batch;
  batch.count = count;
  batch.images = AlignedArray<float>(static_cast<std::size_t>(count) * model.input.elements());
  for (float& each : batch.images) each = pixel(random);
  for (int i = 0; i < count; ++i)
    batch.labels.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(model.classes)));
  return batch;
}

std::vector<TensorSource> tensors(const SegmentTable& segments, const AlignedArray<float>& values) {
  return tensors_of(segments, [&values](std::size_t first, std::span<float> to) {
    std::copy_n(values.begin() + first, to.size(), to.begin());
    return Status();
  });
}

void write(const std::string& path, std::vector<TensorSource> all, std::vector<TensorSource> more) {
  all.insert(all.end(), more.begin(), more.end());
  require(write_safetensors(path, std::move(all), {}));
}

void run(const std::string& word, const std::string& out, const std::map<std::string, double>& keys) {
  const std::optional<ModelKind> kind = from_word<ModelKind>(word);
  if (!kind) fail("there is no model " + word);
  const auto key = [&](const char* name) { return keys.at(name); };
  const int batch_size = static_cast<int>(key("batch")), steps = static_cast<int>(key("steps")),
            side = static_cast<int>(key("side"));
  ModelOptions options{.kind = *kind, .classes = static_cast<int>(key("classes"))};
  if (side > 0) options.input = ImageShape{make_model(*kind).input.channels, side, side};
  Result<Model> made = make_model(options);
  if (!made.ok()) fail(made.error().message);
  Model& model = *made;
  for (Operator& one : model.operators)
    if (auto* dropout = std::get_if<Dropout>(&one.attributes)) dropout->probability = 0;

  const auto seed = static_cast<std::uint64_t>(key("seed"));
  cpu::CpuEngine engine(model, {static_cast<int>(key("threads")), batch_size, batch_size, seed});
  AlignedArray<float> parameters(model.segments.padded_count()), gradient(model.segments.padded_count());
  AlignedArray<float> running(model.statistics.padded_count()), measured(model.statistics.padded_count());
  initialize(model.segments, seed, parameters.data());
  std::mt19937_64 random(seed);
  std::vector<Batch> batches;
  for (int step = 0; step < steps; ++step) batches.push_back(draw_batch(model, batch_size, random));
  // Statistics that fit the network: with the initial ones, small weights let nothing through in evaluation.
  engine.forward(parameters.data(), batches.front());
  engine.read_statistics(running.data());
  write(out + "/start.safetensors", tensors(model.segments, parameters), tensors(model.statistics, running));

  std::ofstream file(out + "/batches.f32", std::ios::binary | std::ios::trunc);
  const auto put = [&](const float* values, std::size_t count) {
    file.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof(float)));
  };
  for (const Batch& batch : batches) put(batch.images.data(), batch.images.size());
  for (const Batch& batch : batches) {
    const std::vector<float> labels(batch.labels.begin(), batch.labels.end());
    put(labels.data(), labels.size());
  }
  file.close();
  if (!file) fail("cannot write " + out + "/batches.f32");

  engine.evaluate(parameters.data(), running.data(), batches.front());
  const std::span<const float> logits = engine.evaluation().logits(engine.evaluation().heads().size() - 1);
  nlohmann::json result{{"model", word},
                        {"input", {model.input.channels, model.input.height, model.input.width}},
                        {"classes", model.classes},
                        {"batch", batch_size},
                        {"rate", key("rate")},
                        {"graph", nlohmann::json::parse(graph_json(model))},
                        {"logits", std::vector<float>(logits.begin(), logits.end())}};
  std::vector<double> losses;
  const auto rate = static_cast<float>(key("rate"));
  for (const Batch& batch : batches) {
    losses.push_back(engine.forward(parameters.data(), batch) / batch_size);
    engine.read_statistics(measured.data());
    engine.backward(1.0F / static_cast<float>(batch_size), gradient.data(), [](std::size_t, std::size_t) {});
    follow_statistics(model, measured.span(), running.span());
    if (losses.size() == 1)
      write(out + "/first.safetensors", tensors(model.segments, gradient), tensors(model.statistics, running));
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= rate * gradient[i];
  }
  result["losses"] = losses;
  require(write_file_atomically(out + "/result.json", result.dump()));
}

}  // namespace
}  // namespace tg::engine

int main(int count, char** words) {
  std::map<std::string, double> keys{{"batch", 2}, {"steps", 1},   {"rate", 0.01}, {"side", 0},
                                     {"seed", 1},  {"classes", 0}, {"threads", 2}};
  if (count < 3) tg::engine::fail("MODEL OUT [KEY=VALUE]... are needed");
  for (int i = 3; i < count; ++i) {
    const char* const equals = std::strchr(words[i], '=');
    const std::string name =
        equals == nullptr ? words[i] : std::string(words[i], static_cast<std::size_t>(equals - words[i]));
    if (equals == nullptr || !keys.contains(name)) tg::engine::fail("unknown key " + name);
    keys[name] = std::strtod(equals + 1, nullptr);
  }
  tg::engine::run(words[1], words[2], keys);
}
