// Which exchange a run uses: chosen once, by the proposer, for all (it travels in Commit). Pure.
//
// Bits a member sends per parameter, with codes of b_c and sums of b_s bits per element: direct (N-1) * b_c, sharded
// (N-1)/N * (b_c + b_s). With b_c < b_s < 2 * b_c direct sends less at N = 2, in one trip instead of two, and sharded
// from N = 3.
#pragma once

#include <cstddef>
#include <string_view>

#include "schema/frame.h"

namespace tg::daemon {

// asked is the job's `exchange`: "direct" and "sharded" as asked; auto = direct up to two members, sharded from three.
schema::ExchangeKind choose_exchange(std::string_view asked, std::size_t members);

}  // namespace tg::daemon
