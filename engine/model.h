// The models, independent of the engine that runs them: a graph (graph/graph.h), the segments of its parameters and the
// statistics of its batch normalizations. LeNet, CifarNet and two-column AlexNet are those that the paper's own code
// trains, with the same layers, paddings, initial deviations and numbers of parameters. A network from torchvision also
// has torchvision's names. Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/choices.h"
#include "engine/graph/graph.h"
#include "engine/segment.h"
#include "kernels/base/status.h"

namespace tg::engine {

struct Model {
  std::string name;
  ImageShape input;
  int classes = 0;
  SegmentTable segments;
  // Running means and variances of the batch normalizations, laid out like segments. They are state but have no
  // gradients: engine.h says how they are kept.
  SegmentTable statistics;
  // By the class of a sample, what its loss is multiplied by in training; empty = 1 for all.
  std::vector<double> class_weights;
  std::vector<Operator> operators;
  // Hash of names, shapes and initial rules of segments and statistics, which nodes compare before a run.
  std::uint64_t hash() const { return 31 * segments.hash() + statistics.hash(); }
};

struct ModelOptions {
  ModelKind kind = ModelKind::kLenet;
  std::optional<ImageShape> input = {};  // nullopt: the published input
  int classes = 0;                       // 0: as published
  std::vector<int> hidden = {256, 128};  // features of the hidden layers of an MLP
  double label_smoothing = 0;            // for every head
  std::vector<double> dropout = {};      // rate of each dropout layer, in graph order; empty: as published
  // Prefixes of the names of frozen segments. A batch normalization whose segments are frozen still normalizes with
  // what it measures, and its running statistics still follow, as with requires_grad = False in PyTorch.
  std::vector<std::string> freeze = {};
};

// Errors (kInvalidJob) name the operator that the input does not fit, and the shapes; or the prefix that freezes
// nothing, and what the names begin with; or how many dropout layers there are.
Result<Model> make_model(const ModelOptions& options);
// The model as published.
Model make_model(ModelKind kind);
ImageShape published_input(ModelKind kind);

// Initial parameters: truncated normals, uniforms and constants drawn from the seed by Philox with + - * / only, so
// that every machine gets the same bits. Fills elements [first, first + values.size()) of segment number `index`,
// padding 0.
void initialize(const Segment& segment, std::size_t index, std::uint64_t seed, std::size_t first,
                std::span<float> values);
// Fills all segments, or statistics; parameters: padded_count floats.
void initialize(const SegmentTable& segments, std::uint64_t seed, float* parameters);

// One step of the running statistics: running += momentum * (measured - running), each batch normalization at its own
// momentum, with one rounding per operation: the same bits on every machine. Both have statistics.padded_count()
// floats.
void follow_statistics(const Model& model, std::span<const float> measured, std::span<float> running);

}  // namespace tg::engine
