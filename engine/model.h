// The models: what a network is, independent of the engine that runs it: a graph (graph/graph.h), the segments of its
// parameters and the statistics that its batch normalizations keep. LeNet, CifarNet and two-column AlexNet are those
// that the paper's own code trains: layers, paddings and initial deviations are the same, and so are the numbers of
// parameters. Where a network is torchvision's, so are all names. Immutable; any thread.
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
  // Running means and variances of the batch normalizations, laid out as segments are. They are state, but no gradient
  // belongs to them: engine.h says how they are kept.
  SegmentTable statistics;
  // Empty for a model of which only the segments are written down (models/replay_only): its gradients can be replayed,
  // it cannot be trained.
  std::vector<Operator> operators;
  bool trainable() const { return !operators.empty(); }
  // Of names, shapes and initial rules of segments and statistics: what two nodes compare before a run.
  std::uint64_t hash() const { return 31 * segments.hash() + statistics.hash(); }
};

struct ModelOptions {
  ModelKind kind = ModelKind::kLenet;
  std::optional<ImageShape> input = {};  // none: what the network was published with
  int classes = 0;                       // 0: as published
  std::vector<int> hidden = {256, 128};  // features of the hidden layers of an MLP
  double label_smoothing = 0;            // of every head
};

// Errors (kInvalidJob) name the operator that the input does not fit, and the shapes.
Result<Model> make_model(const ModelOptions& options);
// As published.
Model make_model(ModelKind kind);
ImageShape published_input(ModelKind kind);

// The initial parameters: truncated normals, uniforms and constants drawn from the seed by Philox with + - * / only, so
// that every machine gets the same bits. Of segment number `index`: elements [first, first + values.size()), padding 0.
void initialize(const Segment& segment, std::size_t index, std::uint64_t seed, std::size_t first,
                std::span<float> values);
// Of all segments, or statistics; parameters: padded_count floats.
void initialize(const SegmentTable& segments, std::uint64_t seed, float* parameters);

// One step of the running statistics: running += momentum * (measured - running), each batch normalization at its own
// momentum, with one rounding per operation: the same bits on every machine. Both: statistics.padded_count() floats.
void follow_statistics(const Model& model, std::span<const float> measured, std::span<float> running);

}  // namespace tg::engine
