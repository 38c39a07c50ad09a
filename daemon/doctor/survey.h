// The input of a diagnosis: every node's examination, or why there is none. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schema/control/doctor.h"
#include "schema/place.h"

namespace tg::daemon {

struct Part {  // one node's
  std::optional<schema::Examination> examination;
  std::int64_t arrived_ms = 0;  // by the asked node's clock, as asked_ms
  std::string silence;          // why there is none
};

struct Survey {
  Per<Seat, std::string> names;  // sorted
  Seat self;                     // the node that was asked
  std::uint64_t seconds = 0;
  double line_mbps = 0;  // what a link should carry, 0 = not given
  Per<Seat, Part> parts;
};

}  // namespace tg::daemon
