#include "daemon/store/saved_arrays.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace tg::daemon {
namespace {

using engine::ReadFloats;
using engine::Segment;
using engine::TensorSource;

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return "[" + text + "]";
}

struct Piece {
  std::size_t begin = 0, end = 0;  // real elements, in the flat array
  ReadFloats read;
};

// Fills `values` from the pieces, which are in the array's order, and with zeros between them.
Status read_flat(const std::vector<Piece>& pieces, std::size_t first, std::span<float> values) {
  std::ranges::fill(values, 0.0F);
  const std::size_t last = first + values.size();
  auto piece = std::ranges::upper_bound(pieces, first, {}, &Piece::end);
  for (; piece != pieces.end() && piece->begin < last; ++piece) {
    const std::size_t from = std::max(first, piece->begin), to = std::min(last, piece->end);
    if (Status read = piece->read(from - piece->begin, values.subspan(from - first, to - from)); !read) return read;
  }
  return {};
}

// The tensors of a file by name; each is removed when it is used.
class Tensors {
 public:
  explicit Tensors(const StateFile& file) : path_(file.path) {
    for (const TensorSource& tensor : file.tensors) unused_.emplace(tensor.name, tensor);
  }

  // Removes the tensors of one array: those of all segments, with this suffix.
  ReadFloats remove(const engine::SegmentTable& segments, const std::string& suffix) {
    const auto pieces = std::make_shared<std::vector<Piece>>();
    for (const Segment& segment : segments.segments()) {
      const auto found = unused_.find(segment.name + suffix);
      if (found == unused_.end()) {
        set_problem(segment.name + suffix + " is missing");
      } else if (found->second.shape != segment.shape) {
        set_problem(segment.name + suffix + " has the shape " + text_of(found->second.shape) + ", the model's has " +
                    text_of(segment.shape));
      } else {
        pieces->push_back({segment.offset, segment.offset + segment.element_count, std::move(found->second.read)});
      }
      if (found != unused_.end()) unused_.erase(found);
    }
    return [pieces](std::size_t first, std::span<float> values) { return read_flat(*pieces, first, values); };
  }

  Status check_all_used() {
    if (!unused_.empty()) set_problem(unused_.begin()->first + " is not of the model");
    if (problem_.empty()) return {};
    return Error{ErrorKind::kCorrupt, path_ + " is no state of this job: tensor " + problem_};
  }

 private:
  void set_problem(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  const std::string path_;
  std::map<std::string, TensorSource> unused_;
  std::string problem_;  // the first problem
};

}  // namespace

Result<StateArrays> arrays_in(const StateFile& file, const engine::Model& model, int slots, bool average, bool best) {
  Tensors tensors(file);
  StateArrays arrays;
  arrays.parameters = tensors.remove(model.segments, "");
  for (int slot = 0; slot < slots; ++slot)
    arrays.slots.push_back(tensors.remove(model.segments, kSlotSuffix + std::to_string(slot)));
  if (average) arrays.average = tensors.remove(model.segments, kAverageSuffix);
  arrays.statistics = tensors.remove(model.statistics, "");
  if (best) {
    arrays.best = tensors.remove(model.segments, kBestSuffix);
    arrays.best_statistics = tensors.remove(model.statistics, kBestSuffix);
  }
  if (Status taken = tensors.check_all_used(); !taken) return taken.error();
  return arrays;
}

}  // namespace tg::daemon
