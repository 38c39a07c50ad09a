#include "tests/bench/codec/recorded.h"

#include <algorithm>
#include <utility>

#include "engine/model.h"
#include "engine/replay/recorded.h"
#include "tests/bench/made_gradient.h"

namespace tg::kernels {
namespace {

// The file's elements without padding, to where the segments lie.
AlignedArray<float> spread(const std::vector<float>& elements, const engine::SegmentTable& segments) {
  AlignedArray<float> flat(segments.padded_count());
  auto from = elements.begin();
  for (const engine::Segment& segment : segments.segments()) {
    std::copy_n(from, segment.element_count, flat.begin() + segment.offset);
    from += static_cast<std::ptrdiff_t>(segment.element_count);
  }
  return flat;
}

}  // namespace

Result<RecordedSubject> read_recorded_subject(ModelKind kind, const std::string& path) {
  const engine::Model model = engine::make_model(kind);
  RecordedSubject recorded;
  Subject& subject = recorded.subject;
  subject.name = "recorded gradients of " + model.name;
  const std::size_t files = engine::recorded_path(path, 0) == path ? 1 : kMembers;
  for (std::size_t rank = 0; rank < files; ++rank) {
    const auto elements = engine::read_recorded(engine::recorded_path(path, rank), model);
    if (!elements) return elements.error();
    recorded.values.push_back(spread(*elements, model.segments));
    subject.gradients.push_back(recorded.values.back().span());
  }
  for (const engine::Segment& segment : model.segments.segments()) {
    Subject::Segment entry{segment.offset, segment.padded_count(), {}, 0};
    for (const std::span<const float> gradient : subject.gradients) {
      const Statistics statistics = available().front()->statistics(gradient.subspan(entry.begin, entry.count));
      const float clip = clip_bound(statistics, segment.element_count, kClipSigma);
      entry.clips.push_back(clip);
      entry.scaler = std::max(entry.scaler, std::min(clip, statistics.max_abs));
    }
    subject.segments.push_back(std::move(entry));
  }
  return recorded;
}

}  // namespace tg::kernels
