#include "daemon/store/artefacts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "engine/storage/safetensors_header.h"

namespace tg::daemon {
namespace {

using engine::ReadFloats;
using engine::TensorImage;
using engine::TensorSource;
using Metadata = std::map<std::string, std::string>;

constexpr const char* kAverageSuffix = ".average";
// In the metadata of a state file: the hashes that the two model files of that state have in theirs.
constexpr const char* kModelHash = "model-values-sha256";
constexpr const char* kRawModelHash = "model-raw-values-sha256";

Result<std::string> hash_of(const std::vector<TensorSource>& tensors) {
  const Result<TensorImage> image = TensorImage::of(tensors, {});
  if (!image) return image.error();
  return image->values_sha256();
}

Error cannot_make(const char* name, const Error& error) {
  return {error.kind, std::string("cannot make ") + name + ": " + error.message};
}

// The model files of a state, once their hashes are known.
Status add_model(Artefacts& artefacts, const char* name, std::vector<TensorSource> tensors, Metadata metadata,
                 const std::string& hash) {
  metadata[kValuesHash] = hash;
  Result<TensorImage> image = TensorImage::of(std::move(tensors), metadata);
  if (!image) return cannot_make(name, image.error());
  artefacts.emplace(name, *std::move(image));
  return {};
}

}  // namespace

Result<Artefacts> artefacts_of(const engine::Model& model, const StateArrays& arrays, const Metadata& metadata) {
  const auto with_statistics = [&](const ReadFloats& array) {
    std::vector<TensorSource> tensors = engine::tensors_of(model.segments, array);
    std::ranges::move(engine::tensors_of(model.statistics, arrays.statistics), std::back_inserter(tensors));
    return tensors;
  };
  const std::vector<TensorSource> raw = with_statistics(arrays.parameters);
  const std::vector<TensorSource> average = arrays.average ? with_statistics(arrays.average) : raw;
  std::vector<TensorSource> state = raw;
  const auto add = [&](const ReadFloats& array, const std::string& suffix) {
    std::ranges::move(engine::tensors_of(model.segments, array, suffix), std::back_inserter(state));
  };
  for (std::size_t slot = 0; slot < arrays.slots.size(); ++slot)
    add(arrays.slots[slot], ".slot" + std::to_string(slot));
  if (arrays.average) add(arrays.average, kAverageSuffix);
  const Result<std::string> raw_hash = hash_of(raw);
  if (!raw_hash) return cannot_make(kRawModelFile, raw_hash.error());
  const Result<std::string> model_hash = arrays.average ? hash_of(average) : raw_hash;
  if (!model_hash) return cannot_make(kModelFile, model_hash.error());
  const Result<std::string> state_hash = hash_of(state);
  if (!state_hash) return cannot_make(kStateFile, state_hash.error());

  Artefacts artefacts;
  if (Status status = add_model(artefacts, kModelFile, average, metadata, *model_hash); !status) return status.error();
  if (Status status = add_model(artefacts, kRawModelFile, raw, metadata, *raw_hash); !status) return status.error();
  Metadata of_state = metadata;
  of_state[kModelHash] = *model_hash;
  of_state[kRawModelHash] = *raw_hash;
  if (Status status = add_model(artefacts, kStateFile, std::move(state), std::move(of_state), *state_hash); !status)
    return status.error();
  return artefacts;
}

Result<FileMarks> write_artefacts(const std::string& directory, const Artefacts& artefacts) {
  FileMarks marks;
  for (const auto& [name, image] : artefacts) {
    Result<engine::FileMark> mark = engine::write_image(directory + "/" + name, image);
    if (!mark) return mark.error();
    marks.emplace(name, *std::move(mark));
  }
  return marks;
}

Result<StateFile> open_state_file(const std::string& path, bool check) {
  Result<engine::OpenTensors> open = engine::open_safetensors(path);
  if (!open) return open.error();
  std::vector<TensorSource> raw, average;
  for (const TensorSource& tensor : open->tensors) {
    const std::size_t dot = tensor.name.rfind('.');
    const std::string suffix = dot == std::string::npos ? "" : tensor.name.substr(dot);
    if (suffix == kAverageSuffix) {
      average.push_back(tensor);
      average.back().name.resize(dot);
    } else if (!suffix.starts_with(".slot")) {
      raw.push_back(tensor);
    }
  }
  // What has no average of its own stands for itself.
  if (!average.empty())
    std::ranges::copy_if(raw, std::back_inserter(average), [averaged = average.size(), &average](const auto& tensor) {
      return std::none_of(average.begin(), average.begin() + static_cast<std::ptrdiff_t>(averaged),
                          [&](const TensorSource& one) { return one.name == tensor.name; });
    });
  const Error damaged{ErrorKind::kCorrupt, path + " is damaged"};
  StateFile state;
  state.metadata = open->metadata;
  if (check) {
    const Result<std::string> hash = hash_of(open->tensors);
    if (!hash) return hash.error();
    if (!state.metadata.contains(kValuesHash) || *hash != state.metadata.at(kValuesHash)) return damaged;
  }
  if (!state.metadata.contains(kModelHash) || !state.metadata.contains(kRawModelHash)) return damaged;
  Metadata metadata = state.metadata;
  const std::string model_hash = metadata.extract(kModelHash).mapped();
  const std::string raw_hash = metadata.extract(kRawModelHash).mapped();
  if (Status status = add_model(state.artefacts, kModelFile, average.empty() ? raw : average, metadata, model_hash);
      !status)
    return status.error();
  if (Status status = add_model(state.artefacts, kRawModelFile, raw, metadata, raw_hash); !status)
    return status.error();
  Result<TensorImage> whole = TensorImage::of(open->tensors, state.metadata);
  if (!whole) return whole.error();
  state.artefacts.emplace(kStateFile, *std::move(whole));
  return state;
}

}  // namespace tg::daemon
