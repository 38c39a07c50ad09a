// Samples that a node shows, and what the network of an ended run says of its test data (tgctl report --mistakes).
// Values, described once (schema/described/rule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

struct SamplePicture {  // a sample as the network sees it, made smaller
  std::string label;
  std::uint32_t channels = 1, height = 0, width = 0;
  std::string pixels;  // row by row, the channels of a pixel together
};
void fields(Is<SamplePicture> auto& it, auto&& field) {
  field("label", it.label, line(kMaxNameBytes));
  field("channels", it.channels, between(1, 3));
  field("height", it.height, up_to(kMaxPictureBytes));
  field("width", it.width, up_to(kMaxPictureBytes));
  field("pixels", it.pixels, bytes(kMaxPictureBytes).called("pixels"));
}

// Evaluate the run's model anew, sample by sample, on the asked node.
struct MistakesRequest {
  std::string run;  // the whole id
};
void fields(Is<MistakesRequest> auto& it, auto&& field) { field("run", it.run, run_id()); }

struct Confusion {  // samples of one class that were taken for another
  std::string is, said;
  std::uint64_t count = 0, of = 0;  // of all samples of that class
};
void fields(Is<Confusion> auto& it, auto&& field) {
  field("is", it.is, line(kMaxNameBytes));
  field("said", it.said, line(kMaxNameBytes));
  field("count", it.count);
  field("of", it.of);
}

struct Mistake {
  SamplePicture picture;  // its label is what it is
  std::string said;
  double probability = 0;  // of what was said
};
void fields(Is<Mistake> auto& it, auto&& field) {
  field("picture", it.picture);
  field("said", it.said, line(kMaxNameBytes));
  field("probability", it.probability, up_to(1));
}

struct Mistakes {
  std::string run_id, node;  // node: who answers
  std::uint64_t step = 0;    // of the model
  std::uint64_t samples = 0, correct = 0;
  std::uint64_t class_count = 0;
  std::vector<std::string> classes;   // their names; none where there are more than kMaxMatrixClasses
  std::vector<std::uint32_t> counts;  // of samples: a row for each class that they are, in it what was said
  std::vector<Confusion> confused;    // the most first
  std::vector<Mistake> wrongest;      // the least probability of what it is first; none of samples that are no pictures
};
void fields(Is<Mistakes> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("node", it.node, node_name());
  field("step", it.step);
  field("samples", it.samples);
  field("correct", it.correct);
  field("class_count", it.class_count);
  field("classes", it.classes, list(kMaxMatrixClasses, line(kMaxNameBytes)));
  field("counts", it.counts, list(kMaxMatrixClasses * kMaxMatrixClasses));
  field("confused", it.confused, list(kMaxConfusions));
  field("wrongest", it.wrongest, list(kMaxPictures));
}

}  // namespace tg::schema
