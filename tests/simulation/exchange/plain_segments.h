// Segments of given sizes and nothing else, for tests of layouts and flows.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "engine/segment.h"

namespace tg::simulation {

inline engine::SegmentTable plain_segments(std::initializer_list<std::size_t> sizes) {
  std::vector<engine::Segment> all;
  for (const std::size_t size : sizes) {
    engine::Segment one;
    one.name = "segment-" + std::to_string(all.size());
    one.element_count = size;
    one.shape = {static_cast<std::int64_t>(size)};
    all.push_back(std::move(one));
  }
  return engine::SegmentTable(std::move(all));
}

}  // namespace tg::simulation
