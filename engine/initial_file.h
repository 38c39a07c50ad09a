// Parameters that a run starts from instead of drawing them from the seed (fine-tuning): a safetensors file with
// PyTorch's names and shapes, such as `tgctl fetch` writes, or torchvision's own saved with safetensors.
//
// The file must have every segment and statistic of the model in its shape. A head's dense layer may have another
// number of classes: it is then drawn from the seed. Other tensors are ignored. What is taken must be finite, which
// open() checks. Nothing is kept in memory: values are read on demand. Immutable after open; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/storage/tensor_image.h"

namespace tg::engine {

inline constexpr const char* kInitialIs =
    "initial takes a .safetensors file that is on every node: what tgctl fetch wrote, a run's own "
    "STATE-DIR/runs/RUN/model-raw.safetensors, or what safetensors.torch.save_file(model.state_dict(), FILE) writes";

class InitialFile {
 public:
  // Reads the file once. Errors name the file, the tensor, and both shapes or the value. advance: called after each
  // part; what it throws passes through.
  static Result<InitialFile> open(
      const std::string& path, const Model& model, std::uint64_t seed, const std::function<void()>& advance = [] {});

  // Elements [first, first + values.size()) of segment or statistic number `index`, padding 0. Throws
  // std::runtime_error naming the file if it cannot be read any more.
  void fill_segment(std::size_t index, std::size_t first, std::span<float> values) const;
  void fill_statistic(std::size_t index, std::size_t first, std::span<float> values) const;

  // Sentences for the log: which tensors are drawn all the same, and which were ignored.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Source {
    Segment segment;
    ReadFloats read;  // empty if drawn from the seed
  };
  void fill(const Source& source, std::size_t index, std::size_t first, std::span<float> values) const;

  std::uint64_t seed_ = 0;
  std::vector<Source> segments_, statistics_;
  std::vector<std::string> notes_;
};

}  // namespace tg::engine
