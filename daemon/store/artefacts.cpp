#include "daemon/store/artefacts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "daemon/store/state_facts.h"
#include "engine/storage/safetensors_header.h"
#include "engine/storage/sha256.h"

namespace tg::daemon {
namespace {

using engine::ReadFloats;
using engine::TensorImage;
using engine::TensorSource;
using Metadata = std::map<std::string, std::string>;

// Names in the metadata of a state file: the hashes of the two model files made from it.
constexpr const char* kModelHash = "model-values-sha256";
constexpr const char* kRawModelHash = "model-raw-values-sha256";
constexpr const char* kHeaderHash = "header-sha256";  // covers all other metadata, tensor names and shapes

Result<std::string> hash_of(const std::vector<TensorSource>& tensors) {
  const Result<TensorImage> image = TensorImage::of(tensors, {});
  if (!image) return image.error();
  return image->values_sha256();
}

// Hashes each text with its length, so that no two headers give the same bytes.
std::string header_hash_of(const Metadata& metadata, const std::vector<TensorSource>& tensors) {
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    const std::string bytes = std::to_string(text.size()) + ":" + text;
    hash.add(std::as_bytes(std::span(bytes)));
  };
  for (const auto& [name, text] : metadata) {
    if (name == kHeaderHash) continue;
    add(name);
    add(text);
  }
  for (const TensorSource& tensor : tensors) {
    add(tensor.name);
    std::string shape;
    for (const std::int64_t size : tensor.shape) shape += std::to_string(size) + ",";
    add(shape);
  }
  return hash.hex();
}

Error cannot_make(const char* name, const Error& error) {
  return {error.kind, std::string("cannot make ") + name + ": " + error.message};
}

// Adds one file of a state, whose hash is known.
Status add_file(Artefacts& artefacts, const char* name, std::vector<TensorSource> tensors, Metadata metadata,
                const std::string& hash) {
  metadata[kValuesHash] = hash;
  Result<TensorImage> image = TensorImage::of(std::move(tensors), metadata);
  if (!image) return cannot_make(name, image.error());
  artefacts.emplace(name, *std::move(image));
  return {};
}

// Adds the two model files of a state; the state's metadata have their hashes.
Status add_models(Artefacts& artefacts, std::vector<TensorSource> model, std::vector<TensorSource> raw,
                  const Metadata& of_state) {
  Metadata metadata = of_state;
  for (const char* const name : {kModelHash, kRawModelHash, kHeaderHash}) metadata.erase(name);
  for (const char* const name : kStateOnly) metadata.erase(name);
  if (Status status = add_file(artefacts, kModelFile, std::move(model), metadata, of_state.at(kModelHash)); !status)
    return status;
  metadata.erase(kBestStep);
  return add_file(artefacts, kRawModelFile, std::move(raw), metadata, of_state.at(kRawModelHash));
}

Error damaged(const StateFile& state, const char* what) {
  return {ErrorKind::kCorrupt, state.path + " is damaged: " + what};
}

// Checks that the header is as it was written.
Status check_header(const StateFile& state) {
  const auto has = [&](const char* name) { return state.metadata.contains(name); };
  if (!has(kValuesHash) || !has(kModelHash) || !has(kRawModelHash)) return damaged(state, "its metadata lack hashes");
  // The version before this one did not hash headers.
  if (has(kHeaderHash) ? header_hash_of(state.metadata, state.tensors) != state.metadata.at(kHeaderHash)
                       : has("lineage"))
    return damaged(state, "its header has another hash than it had when it was written");
  return {};
}

}  // namespace

Result<Artefacts> artefacts_of(const engine::Model& model, const StateArrays& arrays, const Metadata& metadata) {
  const auto whole = [&](const ReadFloats& array, const ReadFloats& statistics, const std::string& suffix = "") {
    std::vector<TensorSource> tensors = engine::tensors_of(model.segments, array, suffix);
    std::ranges::move(engine::tensors_of(model.statistics, statistics, suffix), std::back_inserter(tensors));
    return tensors;
  };
  const std::vector<TensorSource> raw = whole(arrays.parameters, arrays.statistics);
  const std::vector<TensorSource> shown = arrays.best      ? whole(arrays.best, arrays.best_statistics)
                                          : arrays.average ? whole(arrays.average, arrays.statistics)
                                                           : raw;
  std::vector<TensorSource> state = raw;
  const auto add = [&](const ReadFloats& array, const std::string& suffix) {
    std::ranges::move(engine::tensors_of(model.segments, array, suffix), std::back_inserter(state));
  };
  for (std::size_t slot = 0; slot < arrays.slots.size(); ++slot)
    add(arrays.slots[slot], kSlotSuffix + std::to_string(slot));
  if (arrays.average) add(arrays.average, kAverageSuffix);
  if (arrays.best)
    std::ranges::move(whole(arrays.best, arrays.best_statistics, kBestSuffix), std::back_inserter(state));
  const Result<std::string> raw_hash = hash_of(raw);
  if (!raw_hash) return cannot_make(kRawModelFile, raw_hash.error());
  const Result<std::string> model_hash = arrays.best || arrays.average ? hash_of(shown) : raw_hash;
  if (!model_hash) return cannot_make(kModelFile, model_hash.error());
  const Result<std::string> state_hash = hash_of(state);
  if (!state_hash) return cannot_make(kStateFile, state_hash.error());

  Artefacts artefacts;
  Metadata of_state = metadata;
  of_state[kModelHash] = *model_hash;
  of_state[kRawModelHash] = *raw_hash;
  if (Status status = add_models(artefacts, shown, raw, of_state); !status) return status.error();
  of_state[kValuesHash] = *state_hash;
  of_state[kHeaderHash] = header_hash_of(of_state, state);
  if (Status status = add_file(artefacts, kStateFile, std::move(state), std::move(of_state), *state_hash); !status)
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

Status check_values(const StateFile& state, const std::function<void()>& advance) {
  std::vector<TensorSource> tensors = state.tensors;
  for (TensorSource& tensor : tensors)
    tensor.read = [read = tensor.read, &advance](std::size_t first, std::span<float> to) {
      advance();
      return read(first, to);
    };
  const Result<std::string> hash = hash_of(tensors);
  if (!hash) return hash.error();
  if (*hash != state.metadata.at(kValuesHash))
    return damaged(state, "its values have another hash than they had when they were written");
  return {};
}

Result<StateFile> open_state_file(const std::string& path) {
  Result<engine::OpenTensors> open = engine::open_safetensors(path);
  if (!open) return open.error();
  StateFile state{.path = path, .metadata = std::move(open->metadata), .tensors = std::move(open->tensors)};
  if (Status whole = check_header(state); !whole) return whole.error();
  std::vector<TensorSource> raw, average, best;
  for (const TensorSource& tensor : state.tensors) {
    const std::size_t dot = tensor.name.rfind('.');
    const std::string suffix = dot == std::string::npos ? "" : tensor.name.substr(dot);
    if (suffix == kAverageSuffix || suffix == kBestSuffix) {
      std::vector<TensorSource>& tensors = suffix == kBestSuffix ? best : average;
      tensors.push_back(tensor);
      tensors.back().name.resize(dot);
    } else if (!suffix.starts_with(kSlotSuffix)) {
      raw.push_back(tensor);
    }
  }
  // A tensor without an average stands for itself.
  if (!average.empty())
    std::ranges::copy_if(raw, std::back_inserter(average), [averaged = average.size(), &average](const auto& tensor) {
      return std::none_of(average.begin(), average.begin() + static_cast<std::ptrdiff_t>(averaged),
                          [&](const TensorSource& one) { return one.name == tensor.name; });
    });
  const std::vector<TensorSource>& shown = !best.empty() ? best : !average.empty() ? average : raw;
  if (Status status = add_models(state.artefacts, shown, raw, state.metadata); !status) return status.error();
  Result<TensorImage> whole = TensorImage::of(state.tensors, state.metadata);
  if (!whole) return whole.error();
  state.artefacts.emplace(kStateFile, *std::move(whole));
  return state;
}

}  // namespace tg::daemon
