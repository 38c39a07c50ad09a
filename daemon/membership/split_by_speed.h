// Splits a new run's batch by speed (split = speed), so that every member computes for about the same time. Decided
// once, at the proposer, from the votes: it travels as the members' weights in Commit. Pure.
#pragma once

#include <cstdint>

#include "schema/frame/frame.h"
#include "schema/options/job.h"
#include "schema/place.h"

namespace tg::daemon {

// Weights in proportion to the samples per second of each member's own forward + backward: the fastest has
// schema::kMaxWeight, the others the nearest whole number, 1 at least. All are 1 if a member has measured nothing,
// or if gradients are replayed, which takes as long for any share. votes: accepted ones of all.
Per<Seat, std::uint16_t> weights_by_speed(const schema::JobSpec& job, const Per<Seat, schema::Vote>& votes);

}  // namespace tg::daemon
