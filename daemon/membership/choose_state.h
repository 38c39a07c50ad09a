// Which state a run goes on from: the newest that every member has. Pure; the proposer decides it with all offers.
//
// States are ordered by (lineage, view, step): after a resume from an earlier state the newer one has fewer steps. With
// from_step it is the newest of that step. A state has one digest: where two members' differ, nothing is chosen, and
// both are named; older states are there for who asks for one. The run's beginning, which all have always, is not
// chosen unasked where members went on in a later view without the others: it would give up all they have done.
#pragma once

#include <string>
#include <variant>

#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// What a refusal names. node: "" where it is about all.
struct NoState {
  std::string node;
  Error error;
};
using ChosenState = std::variant<schema::StateId, NoState>;

// offers: of all nodes.
ChosenState choose_state(const std::string& run_id, const schema::Resume& asked, const Per<Seat, schema::Offer>& offers,
                         const Per<Seat, std::string>& names);

}  // namespace tg::daemon
