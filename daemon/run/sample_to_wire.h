// A sample that is shown, as a control message has it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/shown_samples.h"
#include "schema/control/samples.h"
#include "schema/text.h"

namespace tg::daemon {

static_assert(3 * engine::kMaxShownSide * engine::kMaxShownSide <= schema::kMaxPictureBytes);

inline schema::SamplePicture to_wire(const engine::ShownSample& sample, const std::string& label) {
  return {schema::clip_text(label, schema::kMaxNameBytes), static_cast<std::uint32_t>(sample.shape.channels),
          static_cast<std::uint32_t>(sample.shape.height), static_cast<std::uint32_t>(sample.shape.width),
          std::string(sample.pixels.begin(), sample.pixels.end())};
}

}  // namespace tg::daemon
