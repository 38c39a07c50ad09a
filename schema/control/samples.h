// Sample pictures of a run's data, and the misclassifications of an ended run's model (tgctl report --mistakes).
// Values, described once (schema/described/rule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

struct SamplePicture {  // a sample as the network sees it, scaled down
  std::string label;
  std::uint32_t channels = 1, height = 0, width = 0;
  std::string pixels;  // row by row, with the channels of a pixel together
};
void fields(Is<SamplePicture> auto& it, auto&& field) {
  field("label", it.label, line(kMaxNameBytes));
  field("channels", it.channels, between(1, 3));
  field("height", it.height, up_to(kMaxPictureBytes));
  field("width", it.width, up_to(kMaxPictureBytes));
  field("pixels", it.pixels, bytes(kMaxPictureBytes).called("pixels"));
}

// Asks the node to evaluate the run's model again, sample by sample.
struct MisclassificationsRequest {
  std::string run;  // the whole id
};
void fields(Is<MisclassificationsRequest> auto& it, auto&& field) { field("run", it.run, run_id()); }

struct Confusion {  // samples of one class that were classified as another
  std::string actual, predicted;
  std::uint64_t count = 0, total = 0;  // total: all samples of the actual class
};
void fields(Is<Confusion> auto& it, auto&& field) {
  field("actual", it.actual, line(kMaxNameBytes));
  field("predicted", it.predicted, line(kMaxNameBytes));
  field("count", it.count);
  field("total", it.total);
}

struct Misclassification {
  SamplePicture picture;  // its label is the actual class
  std::string predicted;
  double probability = 0;  // that the model gives the predicted class
};
void fields(Is<Misclassification> auto& it, auto&& field) {
  field("picture", it.picture);
  field("predicted", it.predicted, line(kMaxNameBytes));
  field("probability", it.probability, up_to(1));
}

struct Misclassifications {
  std::string run_id, node;  // node: the one that evaluated
  std::uint64_t step = 0;    // the model's
  std::uint64_t samples = 0, correct = 0;
  std::uint64_t class_count = 0;
  std::vector<std::string> classes;   // their names; none where there are more than kMaxMatrixClasses
  std::vector<std::uint32_t> counts;  // the confusion matrix: samples by actual class (row) and predicted class
  std::vector<Confusion> confusions;  // the most frequent first
  std::vector<Misclassification>
      worst;  // lowest probability of the actual class first; only where samples are pictures
};
void fields(Is<Misclassifications> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("node", it.node, node_name());
  field("step", it.step);
  field("samples", it.samples);
  field("correct", it.correct);
  field("class_count", it.class_count);
  field("classes", it.classes, list(kMaxMatrixClasses, line(kMaxNameBytes)));
  field("counts", it.counts, list(kMaxMatrixClasses * kMaxMatrixClasses));
  field("confusions", it.confusions, list(kMaxConfusions));
  field("worst", it.worst, list(kMaxPictures));
}

}  // namespace tg::schema
