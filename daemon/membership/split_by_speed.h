// How the members of a new run split a batch where its job says split = speed: each computes as long as any other, as
// far as their votes tell. Decided once, by the proposer, for all: it travels as the members' weights in Commit. Pure.
#pragma once

#include <cstdint>

#include "schema/frame/frame.h"
#include "schema/options/job.h"
#include "schema/place.h"

namespace tg::daemon {

// Weights in proportion to the samples per second of each member's own forward + backward: the fastest has
// schema::kMaxWeight, the others the nearest whole number, 1 at least. All are 1 where somebody has measured nothing,
// or gradients are replayed, which takes as long for any share. votes: accepted ones of all.
Per<Seat, std::uint16_t> weights_by_speed(const schema::JobSpec& job, const Per<Seat, schema::Vote>& votes);

}  // namespace tg::daemon
