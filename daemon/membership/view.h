// Who takes part in a run: the view.
#pragma once

#include <cstddef>

#include "schema/place.h"

namespace tg::daemon {

using Rank = std::size_t;

}  // namespace tg::daemon
