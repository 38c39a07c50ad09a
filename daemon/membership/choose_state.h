// Which state a run goes on from, and with whom. Pure; the proposer decides it with all offers.
//
// States are ordered by (lineage, view, step): after a resume from an earlier state the newer one has fewer steps. It
// is the newest that all who are asked have, unless some of them went on in a later view: then it is the newest that
// all of those have, and they go on; the others come into the run afterwards and are given it (admission.h), and so
// does a node that knows nothing of the run. Unasked the members of the newest view that anybody knows must all be
// there and know it: had there been a later one, one of them would say so. A person may go on with fewer. With
// from_step it is the newest of that step, which all have. A state has one digest: where two members' differ, nothing
// is chosen, and both are named; older states are there for who asks for one. Where nobody can come into the run
// (join-limit = 0) all nodes go on or none does; its beginning is not chosen unasked then if some went on without the
// others: it would give up all they have done.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// What a refusal names. node: "" where it is about all.
struct NoState {
  std::string node;
  Error error;
};
struct StateAndMembers {
  schema::StateId state;
  std::vector<Seat> members;  // that have it, by seat
};
using ChosenState = std::variant<StateAndMembers, NoState>;

struct Resuming {
  bool unasked = false;  // the nodes go on by themselves
  bool joins = true;     // who lacks the state can be given it
};
// offers: by seat, of these nodes; of others nothing.
ChosenState choose_state(const std::string& run_id, const schema::Resume& asked, const std::vector<Seat>& nodes,
                         const Per<Seat, schema::Offer>& offers, const Per<Seat, std::string>& names,
                         const Resuming& how = {});

}  // namespace tg::daemon
