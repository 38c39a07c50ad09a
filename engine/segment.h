// Segments: the place of each parameter tensor in the flat arrays (parameters, gradients, slots, EMA).
//
// A segment starts at a multiple of kernels::kBlock elements; its padding up to the next one stays 0. Order is that of
// the network's forward pass (conv1.weight, conv1.bias, conv2.weight, ...), row-major in PyTorch's layout (OIHW for
// convolutions, out x in for dense layers), whatever layout an engine prefers inside. Immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tg::engine {

struct Segment {
  std::string name;                  // as PyTorch names it: "conv1.weight"
  std::vector<std::int64_t> shape;   // as PyTorch shapes it
  std::size_t element_count = 0;     // real elements
  std::size_t offset = 0;            // first element in a flat array, multiple of kBlock
  double initial_deviation = 0;      // truncated normal (cut at 2 deviations) of this deviation; 0 = not normal
  double initial_bound = 0;          // else uniform between -bound and bound; 0 = constant
  double initial_value = 0;          // the constant, if both are 0
  bool decays = false;               // weight decay applies (the recipe decides the amount)
  bool last_layer = false;           // belongs to the logits
  bool frozen = false;               // stays as it is: has no gradient, is in no chunk, does not decay
  std::size_t padded_count() const;  // elements, multiple of kBlock
};

class SegmentTable {
 public:
  SegmentTable() = default;
  // Sets the counts and offsets; everything else comes from the model.
  explicit SegmentTable(std::vector<Segment> segments);

  const std::vector<Segment>& segments() const { return segments_; }
  const Segment& operator[](std::size_t i) const { return segments_[i]; }
  std::size_t size() const { return segments_.size(); }
  std::size_t padded_count() const { return padded_count_; }        // elements of a flat array
  std::size_t parameter_count() const { return parameter_count_; }  // real elements
  // Hash of names, shapes and initial rules.
  std::uint64_t hash() const;

 private:
  std::vector<Segment> segments_;
  std::size_t padded_count_ = 0;
  std::size_t parameter_count_ = 0;
};

// The real elements of a flat array one after another, as they travel; and the inverse, which leaves padding as it is.
std::vector<float> without_padding(const SegmentTable& segments, std::span<const float> flat);
void spread(const SegmentTable& segments, std::span<const float> elements, std::span<float> flat);

}  // namespace tg::engine
