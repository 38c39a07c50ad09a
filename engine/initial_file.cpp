#include "engine/initial_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/storage/safetensors.h"
#include "kernels/base/joined.h"

namespace tg::engine {
namespace {

constexpr std::size_t kMaxNamed = 3;                          // names listed of the ignored tensors
constexpr std::size_t kMaxNameBytes = 100;                    // bytes of a name from the file
constexpr std::size_t kValuesAtOnce = std::size_t{1} << 18;   // read at a time
constexpr std::string_view kCounter = "num_batches_tracked";  // PyTorch's counter in batch normalizations; not used

std::string text_of(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return "a single number";
  return joined(shape, "x", [](std::int64_t extent) { return std::to_string(extent); });
}

// Segments of the dense layers that give logits, auxiliary ones included: these depend on the number of classes.
std::set<std::size_t> head_segments(const Model& model) {
  std::set<std::size_t> segments;
  for (const Operator& one : model.operators) {
    if (!std::holds_alternative<CrossEntropy>(one.attributes) || one.inputs[0] == 0) continue;
    const auto* dense = std::get_if<Dense>(&model.operators[one.inputs[0] - 1].attributes);
    if (dense == nullptr) continue;
    segments.insert(dense->weight);
    if (dense->bias) segments.insert(*dense->bias);
  }
  return segments;
}

bool differ_in_classes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return !a.empty() && a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

Error misfit(const std::string& path, const Model& model, const std::string& what) {
  return {ErrorKind::kInvalidJob, "initial: " + path + " " + what +
                                      "; give a file of the same model and input size as " + model.name + "'s here"};
}

// Reads all values of a tensor. A NaN could pass unseen through training (ReLU swallows it) into the model; so could
// the root of a negative variance.
Status check_values(const std::string& path, const TensorSource& tensor, std::size_t count, bool variance,
                    const std::function<void()>& advance) {
  std::vector<float> values(std::min(count, kValuesAtOnce));
  for (std::size_t first = 0; first < count; first += values.size()) {
    const std::span<float> part = std::span(values).first(std::min(values.size(), count - first));
    if (const Status read = tensor.read(first, part); !read)
      return Error{ErrorKind::kInvalidJob, "initial: " + read.error().message};
    advance();
    const auto odd = std::ranges::find_if(
        part, [variance](float value) { return !std::isfinite(value) || (variance && value < 0); });
    if (odd == part.end()) continue;
    return Error{ErrorKind::kInvalidJob,
                 "initial: " + path + " has " +
                     (std::isfinite(*odd) ? "a negative variance" : "a value that is not finite") + " in " +
                     tensor.name + ", element " + std::to_string(first + static_cast<std::size_t>(odd - part.begin())) +
                     "; training that made it had failed: take an earlier state"};
  }
  return {};
}

std::set<std::size_t> variances(const Model& model) {
  std::set<std::size_t> statistics;
  for (const Operator& one : model.operators)
    if (const auto* normalization = std::get_if<BatchNormalization>(&one.attributes))
      statistics.insert(normalization->variance);
  return statistics;
}

std::string left_alone(const std::map<std::string, TensorSource>& tensors) {
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(kCounter)) continue;
    if (count++ < kMaxNamed) names += (names.empty() ? "" : ", ") + name.substr(0, kMaxNameBytes);
  }
  if (count == 0) return "";
  return "it has " + std::to_string(count) + (count == 1 ? " tensor" : " tensors") +
         " that the model does not have: " + names + (count > kMaxNamed ? ", ..." : "");
}

// What cannot be read, or is damaged, may not have been meant to be such a file.
Error not_opened(const Error& cause) {
  const bool says_what = cause.kind == ErrorKind::kInvalidJob;
  return {ErrorKind::kInvalidJob, "initial: " + cause.message + (says_what ? "" : std::string("; ") + kInitialIs)};
}

}  // namespace

Result<InitialFile> InitialFile::open(const std::string& path, const Model& model, std::uint64_t seed,
                                      const std::function<void()>& advance) {
  Result<OpenTensors> file = open_safetensors(path);
  if (!file) return not_opened(file.error());
  std::map<std::string, TensorSource> tensors;
  for (TensorSource& tensor : file->tensors) {
    std::string name = tensor.name;
    tensors.emplace(std::move(name), std::move(tensor));
  }
  InitialFile initial;
  initial.seed_ = seed;
  std::string drawn;
  const std::set<std::size_t> heads = head_segments(model);
  enum class Role : std::uint8_t { kOther, kHead, kVariance };
  const auto take = [&](const Segment& segment, Role role, std::vector<Source>& sources) -> Status {
    const auto found = tensors.find(segment.name);
    if (found == tensors.end())
      return misfit(path, model, "has no tensor " + segment.name + " of " + text_of(segment.shape));
    const std::vector<std::int64_t>& shape = found->second.shape;
    Source source{segment, found->second.read};
    if (shape != segment.shape) {
      if (role != Role::kHead || !differ_in_classes(shape, segment.shape))
        return misfit(
            path, model,
            "has " + segment.name + " of " + text_of(shape) + " where " + text_of(segment.shape) + " is needed");
      source.read = {};
      drawn += (drawn.empty() ? "" : ", ") + segment.name + " (" + text_of(segment.shape) + ", in the file " +
               text_of(shape) + ")";
    } else if (const Status good =
                   check_values(path, found->second, segment.element_count, role == Role::kVariance, advance);
               !good) {
      return good;
    }
    sources.push_back(std::move(source));
    tensors.erase(found);
    return {};
  };
  for (std::size_t s = 0; s < model.segments.size(); ++s)
    if (const Status taken = take(model.segments[s], heads.contains(s) ? Role::kHead : Role::kOther, initial.segments_);
        !taken)
      return taken.error();
  const std::set<std::size_t> positive = variances(model);
  for (std::size_t s = 0; s < model.statistics.size(); ++s)
    if (const Status taken =
            take(model.statistics[s], positive.contains(s) ? Role::kVariance : Role::kOther, initial.statistics_);
        !taken)
      return taken.error();
  if (!drawn.empty()) initial.notes_.push_back("drawn from the seed because the number of classes differs: " + drawn);
  if (std::string note = left_alone(tensors); !note.empty()) initial.notes_.push_back(std::move(note));
  return initial;
}

void InitialFile::fill_segment(std::size_t index, std::size_t first, std::span<float> values) const {
  fill(segments_[index], index, first, values);
}

void InitialFile::fill_statistic(std::size_t index, std::size_t first, std::span<float> values) const {
  fill(statistics_[index], index, first, values);
}

void InitialFile::fill(const Source& source, std::size_t index, std::size_t first, std::span<float> values) const {
  if (!source.read) return initialize(source.segment, index, seed_, first, values);
  const std::size_t left = source.segment.element_count - std::min(first, source.segment.element_count);
  const std::size_t real = std::min(values.size(), left);
  if (real > 0)
    if (const Status read = source.read(first, values.first(real)); !read)
      throw std::runtime_error("initial: " + read.error().message);
  std::ranges::fill(values.subspan(real), 0.0F);
}

}  // namespace tg::engine
